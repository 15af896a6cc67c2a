"""Names of months as dates spell them: European languages, Turkish and Indonesian.

One row is one language, or one of its habits of abbreviation, January first; accents are folded away on both
sides. Where two languages disagree over a word (listopad) the row above wins.
"""

# Letters that look alike are meant as they are: RUF001 is about typing errors, and this is a list of words.
# ruff: noqa: RUF001

import unicodedata
from typing import Final

_ROWS: Final = """
january february march april may june july august september october november december
jan feb mar apr may jun jul aug sept oct nov dec
jan feb mar apr may jun jul aug sep okt nov dez
januar februar marz april mai juni juli august september oktober november dezember
janner feber maerz apr mai juin juil aout sept oct nov dec
janvier fevrier mars avril mai juin juillet aout septembre octobre novembre decembre
janv fevr mars avr mai juin juil aout sept oct nov dec
enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre
ene feb mar abr may jun jul ago set oct nov dic
gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre
gen feb mar apr mag giu lug ago set ott nov dic
janeiro fevereiro marco abril maio junho julho agosto setembro outubro novembro dezembro
jan fev mar abr mai jun jul ago set out nov dez
januari februari maart april mei juni juli augustus september oktober november december
januari februari mars april maj juni juli augusti september oktober november december
januar februar marts april maj juni juli august september oktober november desember
stycznia lutego marca kwietnia maja czerwca lipca sierpnia wrzesnia pazdziernika listopada grudnia
ledna unora brezna dubna kvetna cervna cervence srpna zari rijna listopadu prosince
января февраля марта апреля мая июня июля августа сентября октября ноября декабря
січня лютого березня квітня травня червня липня серпня вересня жовтня листопада грудня
ocak subat mart nisan mayıs haziran temmuz agustos eylul ekim kasım aralık
januari februari maret april mei juni juli agustus september oktober november desember
januar februar marcius aprilis majus junius julius augusztus szeptember oktober november december
ianuarie februarie martie aprilie mai iunie iulie august septembrie octombrie noiembrie decembrie
gener febrer marc abril maig juny juliol agost setembre octubre novembre desembre
ιανουαριου φεβρουαριου μαρτιου απριλιου μαιου ιουνιου ιουλιου αυγουστου σεπτεμβριου οκτωβριου νοεμβριου δεκεμβριου
"""


def _folded(word: str) -> str:
    return "".join(c for c in unicodedata.normalize("NFKD", word.lower()) if not unicodedata.combining(c))


def _table() -> dict[str, int]:
    table: dict[str, int] = {}
    for row in _ROWS.strip().splitlines():
        for number, name in enumerate(row.split(), start=1):
            table.setdefault(_folded(name), number)
    return table


_NUMBER: Final = _table()


def month_number(word: str) -> int | None:
    """The number of the month a word names, 1 to 12; None for any other word."""
    return _NUMBER.get(_folded(word.strip(".,")))
