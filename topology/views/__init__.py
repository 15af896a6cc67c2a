"""The web views of a worker: what is known, how domains stand, tweets in, health and metrics.

`GET /` lists them.

Any worker answers any request: what belongs to a domain is passed on to the domain's owner (`owner`). Answers
and errors are JSON (`http`). Faust's own pages are left out: they show whole tables to whoever asks.
"""

import logging
import time
from collections.abc import Callable
from typing import Final

from aiohttp import web
from faust.types import AppT
from faust.web import View
from faust.web.base import BlueprintManager

from agents.clients.metadata import MetadataStore
from topology.views import domains, health, tweets, urls
from topology.views.health import Backlogs
from topology.views.http import in_sentences, parameters, reply
from topology.views.lookup import Lookup
from topology.views.owner import Owners, OwnerUrl, assigned, only_one
from topology.wiring import Worker

_INDEX: Final = {
    "GET /urls?url=URL": "what is known of a URL; &fields=title,image",
    "POST /urls": 'what is known of up to 300 URLs: {"urls": [...], "fields": [...]}',
    "POST /tweets": "tweets in: one JSON document, or one per line; gzip welcome",
    "GET /tweets/ID": "what was answered to a tweet",
    "GET /domains/NAME": "how a domain stands; ?url=URL: why that URL would wait",
    "GET /health": "is this worker up; ?ready=1, ?live=1",
    "GET /metrics": "counters and gauges for Prometheus",
}


def attach(
    worker: Worker,
    *,
    metadata: MetadataStore | None,
    backlogs: Backlogs,
    owner_url: OwnerUrl | None = None,
    clock: Callable[[], float] = time.time,
) -> None:
    """Register all views on a worker's app; it must not have started.

    `metadata`: the store when this worker has one. `backlogs`: counts unacknowledged messages by topic.
    `owner_url`: who owns a domain, if Faust's assignor shall not say.
    """
    app = worker.app
    logging.getLogger("aiohttp.server").setLevel(logging.CRITICAL)  # it logs clients' faults; ours are logged by us
    app.conf.web_application_options = {"middlewares": [in_sentences]}  # before anything touches app.web
    app.web.blueprints = BlueprintManager()
    embedded = worker.settings.log_url == "embedded:"
    owners = Owners(worker, owner_url or (only_one(worker) if embedded else assigned(worker)))
    lookup = Lookup(worker, owners, metadata)
    urls.attach(app, lookup)
    domains.attach(app, owners, domains.Desk(worker, owners, lookup, clock))
    tweets.attach(worker, metadata)
    health.attach(worker, backlogs)
    _attach_index(app)


def _attach_index(app: AppT) -> None:
    @app.page("/", name="index")
    class Index(View):
        """The list of views."""

        async def get(self, request: web.Request) -> web.Response:
            """Return what can be asked here."""
            parameters(request)
            return reply(_INDEX)
