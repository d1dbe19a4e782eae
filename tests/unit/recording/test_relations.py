"""Names of tables and indexes, joined with the files of a recording."""

from __future__ import annotations

from pathlib import Path

import pytest

from tierwise.model.errors import TierwiseError
from tierwise.model.placement import Role
from tierwise.recording.breakdown import FileTraffic
from tierwise.recording.buffer_content import BufferContent, BufferedFile
from tierwise.recording.relations import Relation, Relations, read_relation_names, relations_of


def file(number: int, path: str, waited_s: float = 1.0, role: Role = Role.DATA) -> FileTraffic:
    return FileTraffic(
        file=number,
        path=path,
        role=role,
        size_bytes=100,
        reads=2,
        writes=1,
        flushes=0,
        read_bytes=16384,
        written_bytes=8192,
        waited_s=waited_s,
        session_waited_s=waited_s,
        device_s=waited_s,
    )


ORDERS = "public.orders"
NAMED = [
    Relation(path="base/5/100", name="public.orders", kind="table", size_bytes=1000),
    Relation(path="base/5/101", name="public.orders_pkey", kind="index", table=ORDERS, size_bytes=50),
    Relation(path="base/5/102", name="pg_toast.pg_toast_100", kind="toast", table=ORDERS, size_bytes=7),
    Relation(path="pg_tblspc/9/PG_15_2/5/200", name="public.l_1", kind="table", partitioned="public.lines"),
    Relation(path="base/6/300", name="public.orders", kind="table", database="other"),
]


def read_relations() -> Relations:
    files = [
        file(3, "/srv/pg/base/5/100", 5.0),
        file(4, "/srv/pg/base/5/100.1", 2.0),
        file(5, "/srv/pg/base/5/100_fsm", 0.5),
        file(6, "/srv/pg/base/5/101", 4.0),
        file(7, "/srv/pg/base/5/102 (deleted)", 1.0),
        file(8, "/mnt/fast/PG_15_2/5/200", 3.0),
        file(9, "/srv/pg/base/6/300", 0.1),
        file(10, "/srv/pg/base/5/999", 0.2),
        file(11, "/srv/pg/pg_wal/1", 9.0, Role.LOG),
    ]
    return relations_of("postgres", files, NAMED)


def test_a_table_has_its_segments_forks_and_toast() -> None:
    rows = read_relations().rows
    orders = rows[0]
    assert (orders.relation.name, orders.files) == ("public.orders", [3, 4, 5, 7])
    assert (orders.size_bytes, orders.waited_s, orders.reads) == (1007, 8.5, 8)
    assert [row.relation.label for row in rows] == [
        "public.orders",
        "public.orders_pkey",
        "public.l_1",
        "other.public.orders",
    ]
    assert rows[2].size_bytes == 100, "of its file, as the catalog does not tell"
    assert [relation.file for relation in read_relations().unnamed] == [10]


@pytest.mark.parametrize(
    ("pattern", "files"),
    [
        ("public.orders", [[3, 4, 5, 7]]),
        ("table:public.orders*", [[3, 4, 5, 7]]),
        ("*.orders", [[3, 4, 5, 7], [9]]),
        ("table:other.*", [[9]]),
        ("index:public.orders", [[6]]),
        ("index:public.*", [[6]]),
        ("public.lines", [[8]]),
        ("other.public.orders", [[9]]),
        ("public.*_pkey", [[6]]),
    ],
)
def test_a_pattern_names_tables_partitions_and_indexes(pattern: str, files: list[list[int]]) -> None:
    assert [row.files for row in read_relations().matching([pattern])] == files


def test_the_pattern_of_a_table_stands_for_it_alone() -> None:
    """A table of the same name in another database stays where it is."""
    found = read_relations()
    for row in found.rows:
        assert found.matching([row.relation.pattern]) == [row]


def test_a_schema_of_the_connected_database_goes_before_another_database() -> None:
    named = [
        Relation(path="base/5/1", name="shop.t", kind="table"),
        Relation(path="base/6/1", name="public.t", kind="table", database="shop"),
    ]
    rows = relations_of("postgres", [file(1, "/x/base/5/1"), file(2, "/x/base/6/1")], named)
    assert [row.files for row in rows.matching(["shop.*"])] == [[1]]
    assert [row.files for row in rows.matching(["shop.public.*"])] == [[2]]


def test_a_name_in_several_databases_asks_for_the_database() -> None:
    named = [
        Relation(path=f"base/{place}/1", name="public.t", kind="table", database=database)
        for place, database in enumerate(["shop", "v1.2"], 5)
    ]
    files = [file(1, "/x/base/5/1"), file(2, "/x/base/6/1")]
    with pytest.raises(TierwiseError, match=r"public\.t is in several databases") as error:
        relations_of("postgres", files, named).matching(["public.t"])
    assert error.value.fix == 'put the database first: shop.public.t, "v1.2".public.t'
    assert [row.files for row in relations_of("postgres", files, named[:1]).matching(["public.t"])] == [[1]]
    rows = relations_of("postgres", files, named).matching(['"v1.2".public.t'])
    assert [row.files for row in rows] == [[2]]


def test_two_patterns_name_a_table_once() -> None:
    assert len(read_relations().matching(["public.orders_pkey", "index:public.orders"])) == 1


def test_an_unknown_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(
        TierwiseError, match=r"no table or index of the recording is named public\.order"
    ) as error:
        read_relations().matching(["public.order"])
    assert "public.orders" in error.value.fix
    with pytest.raises(TierwiseError, match="has no names of tables"):
        relations_of("postgres", [], []).matching(["public.order"])


def test_brackets_in_a_name_are_letters() -> None:
    named = [Relation(path="base/5/1", name="public.a[b]", kind="table")]
    rows = relations_of("postgres", [file(1, "/x/base/5/1")], named).matching(["public.a[b]"])
    assert [row.files for row in rows] == [[1]]


def buffer_of(**pages: int) -> BufferContent:
    files = [BufferedFile(path=path, pages=held, pages_by_use={"0": held}) for path, held in pages.items()]
    return BufferContent(page_bytes=8192, pages=100, used_pages=sum(pages.values()), files=files)


def test_what_is_buffered_of_a_table_is_that_of_its_toast_too() -> None:
    pages = {"base/5/100": 7, "base/5/102": 2, "base/6/300": 1, "base/5/1259": 3}
    pages["pg_tblspc/9/PG_15_2/5/200"] = 5
    found = relations_of("postgres", [], NAMED, buffer_of(**pages))
    assert {row.relation.label: row.buffered_bytes // 8192 for row in found.rows} == {
        "public.orders": 9,
        "public.orders_pkey": 0,
        "public.l_1": 5,
        "other.public.orders": 1,
    }
    assert found.rows[[row.buffered_bytes for row in found.rows].index(9 * 8192)].buffered_by_use == {"0": 9}


def test_what_is_buffered_of_innodbs_own_tables_is_no_table() -> None:
    pages = {"shop/orders.ibd": 4, "mysql/innodb_index_stats.ibd": 1, "innodb_undo001": 9}
    found = relations_of("mariadb", [], [], buffer_of(**pages))
    assert [(row.relation.name, row.buffered_bytes) for row in found.rows] == [("shop.orders", 4 * 8192)]


def test_letters_of_innodb_names_are_decoded() -> None:
    """Names as MariaDB 10.11 wrote them; its statement needs the letters."""
    written = {
        "my@0020@0022shop@0022@0020@1o/we@0027ird@0020@0060t@0060@0020@0p": """my "shop" ü.we'ird `t` é""",
        "shop/@0Kpfel@2v@00e4": "shop.Äpfelįä",
        "@g0@h0/@6g@a@@@a": "аб.άａⓐ",
        "shop/odd@": "shop.odd@",
        "eu@002eshop/a@002eb": '"eu.shop"."a.b"',
    }
    rows = relations_of("mariadb", [file(at, f"/d/{path}.ibd") for at, path in enumerate(written)], []).rows
    assert sorted(row.relation.name for row in rows) == sorted(written.values())


def test_innodb_names_its_files_after_tables() -> None:
    files = [
        file(1, "/var/lib/mysql/shop/orders.ibd"),
        file(2, "/var/lib/mysql/shop/lines#P#p0.ibd"),
        file(3, "/var/lib/mysql/shop/k@00e4se.ibd"),
        file(4, "/var/lib/mysql/ibdata1"),
    ]
    rows = relations_of("mariadb", files, []).rows
    assert sorted(row.relation.name for row in rows) == ["shop.käse", "shop.lines#P#p0", "shop.orders"]
    assert [row.files for row in relations_of("mariadb", files, []).matching(["shop.lines"])] == [[2]]
    assert relations_of("postgres", files, []).rows == []


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("path,name\nbase/5/1,public.t\n", "no column kind"),
        ("path,name,kind\nbase/5/1,public.t,view\n", "line 2: kind"),
        ("path,name,kind\n,public.t,table\n", "line 2: path"),
        ("path,name,kind,size_bytes\nbase/5/1,public.t,table,-1\n", "line 2: size_bytes"),
        ('path,name,kind\n"base/5/1,public.t,table\n', "line 1: unexpected end of data"),
        ("", "no column path"),
        (
            "path,name,kind\nbase/5/1,public.t,table\nbase/6/1,public.t,table\n",
            "line 3: public.t is base/6/1",
        ),
        (
            "path,name,kind\nbase/5/1,public.t,table\nbase/5/1,public.u,table\n",
            "line 3: base/5/1 is public.u here and public.t above",
        ),
    ],
)
def test_a_malformed_file_of_names_is_refused_by_line_and_column(
    tmp_path: Path, text: str, problem: str
) -> None:
    names = tmp_path / "names.csv"
    names.write_text(text)
    with pytest.raises(TierwiseError, match=problem) as error:
        read_relation_names(names)
    assert str(names) in error.value.message


def test_a_table_is_no_smaller_than_its_recorded_files() -> None:
    rows = [file(0, "/db/base/5/100"), file(1, "/db/base/5/100.1"), file(2, "/db/base/5/101")]
    named = [
        Relation(path="base/5/100", name=ORDERS, kind="table", size_bytes=1),
        Relation(path="base/5/101", name="public.orders_pkey", kind="index", table=ORDERS, size_bytes=500),
    ]
    sizes = {row.relation.name: row.size_bytes for row in relations_of("postgres", rows, named).rows}
    assert sizes == {ORDERS: 200, "public.orders_pkey": 500}, "the files of another day may have been smaller"


def test_names_are_read_from_a_file(tmp_path: Path) -> None:
    names = tmp_path / "names.csv"
    names.write_text("kind,path,name,table,size_bytes,more\nindex,base/5/1,public.i,public.t,7,x\n")
    assert read_relation_names(names) == [
        Relation(path="base/5/1", name="public.i", kind="index", table="public.t", size_bytes=7)
    ]
