"""Files of numbers only are read the quick way; whatever is unusual is read, or refused, by the careful one."""

from __future__ import annotations

import pytest

from xla_stalloc.packing import instance


@pytest.mark.parametrize(
    "text",
    [
        "id,lower,upper,size\n0,1,2,3\n17,0,9,1000000000000\n",
        "id,lower,upper,size\n0,1,2,3\n1,0,9,4",
        "size,id,upper,alignment,lower\n3,0,2,8,1\n4,1,9,16,0\n",
        "id,lower,upper,size\r\n0,1,2,3\r\n1,0,9,4\r\n",
        "id,lower,upper,size\n007,1,2,3\n7,0,9,4\n",
        "id,lower,upper,size\n+7,1,2,3\n 8 ,0,9,4\n\n",
        "id,lower,upper,size,name\n0,1,2,3,x\n1,0,9,4,y\n",
        'id,lower,upper,size\n"0",1,2,3\n1,0,9,4\n',
        "id,lower,upper,size\n#1,1,2,3\n1,0,9,4\n",
    ],
)
def test_the_quick_way_reads_the_same(tmp_path, monkeypatch, text):
    file = tmp_path / "in.csv"
    file.write_text(text, newline="")
    quick = instance.read(file)
    monkeypatch.setattr(instance, "_parse_numbers", lambda name, text: None)
    careful = instance.read(file)
    assert quick.ids == careful.ids and len(quick.ids) == 2
    for column in ("lower", "upper", "size", "alignment"):
        assert (getattr(quick, column) == getattr(careful, column)).all()
        assert getattr(quick, column).dtype == getattr(careful, column).dtype


def test_the_quick_way_is_taken(tmp_path, monkeypatch):
    monkeypatch.setattr(instance, "_parse", lambda name, lines: pytest.fail("read line by line"))
    file = tmp_path / "in.csv"
    file.write_text("id,lower,upper,size\n" + "".join(f"{i},{i},{i + 7},{i * i}\n" for i in range(2000)))
    assert instance.read(file).size.tolist() == [i * i for i in range(2000)]
