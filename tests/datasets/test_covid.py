"""COVID-19: both kinds of tables, their faults, the rule of `world`, and the published split."""

import datetime
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from physsm._errors import ConfigError, DataError
from physsm.data.table import read_table
from physsm.datasets import covid
from physsm.datasets._jhu import read_counts, read_populations
from physsm.datasets.covid import read_epidemic, world_epidemics, world_parts

EIGHT = (*covid.TRAIN, *covid.VALIDATION, *covid.TEST)
KINDS = ("confirmed", "deaths", "recovered")
PEOPLE = "UID_ISO_FIPS_LookUp_Table.csv"
FIRST = datetime.date(2020, 3, 1)


def day(i):
    return FIRST + datetime.timedelta(days=i)


def sir_rows(days=6, people=1000, seed=0):
    """Date, Susceptible, Infected, Removed: an epidemic in persons."""
    random = np.random.default_rng(seed)
    removed = np.cumsum(random.integers(1, 2 + people // 2000, days))
    infected = 5 + random.integers(0, 1 + people // 100, days)
    return [
        f"{day(i)},{people - one - gone},{one},{gone}"
        for i, (one, gone) in enumerate(zip(infected, removed, strict=True))
    ]


def write_sir(path, rows, header="Date,Susceptible,Infected,Removed"):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join([header, *rows]) + "\n")
    return path


def write_eight(folder, days=300):
    for i, country in enumerate(EIGHT):
        path = folder / "covid_sir8" / f"sir_data_{country}.csv"
        write_sir(path, sir_rows(days, 10**6 * (i + 1), seed=i))
    return folder


def jhu_text(regions, days=None, first=datetime.date(2020, 1, 22)):
    """`regions`: province, country and counts of each row."""
    days = len(regions[0][2]) if days is None else days
    dates = [first + datetime.timedelta(days=i) for i in range(days)]
    names = [f"{date.month}/{date.day}/{date:%y}" for date in dates]
    rows = [["Province/State", "Country/Region", "Lat", "Long", *names]]
    rows += [
        [province, f'"{country}"', "1.5", "", *counts] for province, country, counts in regions
    ]
    return "\n".join(",".join(map(str, row)) for row in rows) + "\n"


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def people_text(*rows):
    """`rows`: province, district, country, people."""
    lines = ["UID,Province_State,Admin2,Country_Region,Population"]
    lines += [f'1,{province},{district},"{country}",{n}' for province, district, country, n in rows]
    return "\n".join(lines) + "\n"


# Date, Susceptible, Infected, Removed


def test_shares_of_a_table(tmp_path):
    rows = ["2020-03-01,990,8,2", "2020-03-02,980,15,5"]
    one = read_epidemic(write_sir(tmp_path / "a.csv", rows), "Nowhere")
    assert (one.country, one.first_day) == ("Nowhere", FIRST)
    np.testing.assert_allclose(one.shares, [[0.99, 0.008, 0.002], [0.98, 0.015, 0.005]])


@pytest.mark.parametrize(
    ("row", "text", "message"),
    [
        (3, "2020-03-04,many,8,2", 'row 5, column Susceptible: "many" is not a number'),
        (3, "2020-03-04,,8,2", "row 5: a number of persons is missing or negative"),
        (3, "2020-03-04,1001,-3,2", "row 5: a number of persons is missing or negative"),
        (3, "2020-03-04,inf,8,2", "row 5, column Susceptible: inf is not a finite number"),
        (3, "2020-03-04,990,8", "row 5: this row has 3 cells, the header has 4 cells"),
        (3, "2020-03-02,990,8,2", "row 5, column Date: the time decreases"),
        (3, "2020-03-03,990,8,2", "row 5, column Date: "),
        (3, "yesterday,990,8,2", "row 5, column Date: "),
        (3, "2020-03-04,991,8,2", "row 5: the three add up to 1001 persons"),
        (0, "2020-03-01,0,0,0", "row 3: the three add up to 1000 persons"),
    ],
)
def test_a_fault_is_named_with_file_and_row(tmp_path, row, text, message):
    rows = sir_rows()
    rows[row] = text
    path = write_sir(tmp_path / "a.csv", rows)
    with pytest.raises(DataError, match=message) as caught:
        read_epidemic(path, "Nowhere")
    assert str(path) in str(caught.value)


def test_a_missing_day_is_named(tmp_path):
    rows = sir_rows()
    del rows[3]
    with pytest.raises(
        DataError, match=r"a\.csv, row 5: this is not the day after that of the row before"
    ):
        read_epidemic(write_sir(tmp_path / "a.csv", rows), "Nowhere")


@pytest.mark.parametrize(
    ("rows", "header"),
    [
        ([], "Date,Susceptible,Infected,Removed"),
        (sir_rows(), "Date,Susceptible,Infected,Gone"),
        (sir_rows(), "Day,Susceptible,Infected,Removed"),
        (sir_rows()[:1], "Date,Susceptible,Infected,Removed"),
        ([row.replace("2020-03-0", "") for row in sir_rows()], "Date,Susceptible,Infected,Removed"),
        (["2020-03-01,0,0,0", "2020-03-02,0,0,0"], "Date,Susceptible,Infected,Removed"),
    ],
)
def test_wrong_tables(tmp_path, rows, header):
    path = write_sir(tmp_path / "a.csv", rows, header)
    with pytest.raises(DataError) as caught:
        read_epidemic(path, "Nowhere")
    assert str(path) in str(caught.value)


def test_a_table_cut_off_inside_a_row_is_refused(tmp_path):
    path = write_sir(tmp_path / "a.csv", sir_rows(people=100_000))
    whole = path.read_bytes()
    ends = {i for i, letter in enumerate(whole) if letter == ord("\n")}
    intact = read_epidemic(path, "Nowhere").shares
    accepted = 0
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        try:
            shares = read_epidemic(path, "Nowhere").shares
        except DataError:
            continue
        assert length in ends or length - 1 in ends
        np.testing.assert_array_equal(shares, intact[: len(shares)])
        accepted += 1
    assert accepted > 0


def test_a_flipped_bit_is_refused_or_changes_nothing(tmp_path):
    """The three must add up: a changed digit is found."""
    path = write_sir(tmp_path / "a.csv", sir_rows())
    whole = path.read_bytes()
    intact = read_epidemic(path, "Nowhere")
    refused = 0
    for place in range(0, 8 * len(whole), 7):
        content = bytearray(whole)
        content[place // 8] ^= 1 << place % 8
        path.write_bytes(bytes(content))
        try:
            found = read_epidemic(path, "Nowhere")
        except DataError:
            refused += 1
            continue
        np.testing.assert_array_equal(found.shares, intact.shares)
    assert refused > 0.9 * 8 * len(whole) / 7


# The tables of Johns Hopkins University


def test_provinces_are_summed(tmp_path):
    text = jhu_text(
        [("North", "B, The", [1, 2, 4]), ("", "A", [5, 5, 6]), ("South", "B, The", [0, 1, 1])]
    )
    counts = read_counts(write(tmp_path / "c.csv", text))
    assert counts.countries == ("A", "B, The")
    assert counts.first_day == datetime.date(2020, 1, 22)
    np.testing.assert_array_equal(counts.persons, [[5, 5, 6], [1, 3, 5]])


def test_populations_are_those_of_whole_countries(tmp_path):
    text = people_text(
        ("", "", "A", 50), ("North", "", "A", 20), ("North", "Town", "A", 3), ("", "", "Ship", "")
    )
    assert read_populations(write(tmp_path / "p.csv", text)) == {"A": 50.0}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file is empty"),
        (jhu_text([("", "A", [])]), "are not one day each"),
        (jhu_text([("", "A", [1, "x"])]), "row 2, column 1/23/20: 'x' is not a number of persons"),
        (jhu_text([("", "A", [1, ""])]), "row 2, column 1/23/20: None is not a number of persons"),
        (jhu_text([("", "A", [1, -2])]), "row 2, column 1/23/20: '-2' is not a number of persons"),
        (jhu_text([("", "A", [1, "nan"])]), "'nan' is not a number of persons"),
        (jhu_text([("", "A", [1, 2]), ("", "B", [1])], days=2), "row 3: this row has 5 cells"),
        (jhu_text([("", "A", [1, 2])]).replace("1/23/20", "1/24/20"), "are not one day each"),
        (jhu_text([("", "A", [1, 2])]).replace("1/23/20", "1/21/20"), "are not one day each"),
        (jhu_text([("", "A", [1, 2])]).replace("1/23/20", "2/30/20"), "'2/30/20' is not a day"),
        (jhu_text([("", "A", [1, 2])]).replace("/20,", f"/{10**30},"), "is not a day"),
        (jhu_text([("", "A", [1, 2])]).replace("Country/", ""), "no column Country/Region"),
        (jhu_text([("", "A", [1, 2])]).replace('"A"', ""), "row 2: there is no country"),
        (jhu_text([("", "A", [1, 2])]).replace('"A"', '"A'), "row 2: a quote has no partner"),
    ],
)
def test_a_wrong_table_of_counts(tmp_path, text, message):
    path = write(tmp_path / "c.csv", text)
    with pytest.raises(DataError, match=message) as caught:
        read_counts(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("number", ["many", "nan", "inf", "-5"])
def test_a_wrong_number_of_people(tmp_path, number):
    path = write(tmp_path / "p.csv", people_text(("", "", "A", 5), ("", "", "B", number)))
    with pytest.raises(DataError, match="row 3: a country and its population are needed"):
        read_populations(path)


def test_damaged_counts_are_refused_or_still_counts(tmp_path):
    text = jhu_text(
        [("", "A", [10, 20, 30]), ("N", "B, The", [1, 2, 3]), ("S", "B, The", [1, 1, 2])]
    )
    path = write(tmp_path / "c.csv", text)
    whole = path.read_bytes()
    for length in range(len(text) - len('S,"B, The",1.5,,1,1,2\n')):
        path.write_bytes(whole[:length])
        try:
            found = read_counts(path)
        except DataError:
            continue
        assert len(found.countries) < 3  # whole rows
    refused = 0
    for place in range(0, 8 * len(whole), 7):
        content = bytearray(whole)
        content[place // 8] ^= 1 << place % 8
        path.write_bytes(bytes(content))
        try:
            found = read_counts(path)
        except DataError:
            refused += 1
            continue
        assert np.isfinite(found.persons).all()
        assert found.persons.shape[1] == 3
        assert len(found.countries) in (2, 3)  # a changed name is another country
    assert refused > 50


def write_world(folder, changed=None, first=None, **people):
    """Two countries whose reports are good, and what a test changes of the first."""
    counts = {
        "confirmed": 4000 + 100 * np.arange(310),
        "deaths": 10 + np.arange(310) // 2,
        "recovered": 1000 + 50 * np.arange(310),
    }
    for kind in KINDS:
        ours = np.array(counts[kind])
        if changed and changed[0] == kind:
            ours = changed[1](ours)
        regions = [("", "Good", ours), ("", "Other", counts[kind])]
        start = (first or {}).get(kind, datetime.date(2020, 1, 22))
        text = jhu_text(regions, first=start)
        write(folder / "covid_jhu" / f"time_series_covid19_{kind}_global.csv", text)
    rows = [("", "", name, n) for name, n in {"Good": 2e6, "Other": 2e6, **people}.items()]
    write(folder / "covid_jhu" / PEOPLE, people_text(*rows))
    return folder


def with_row(row, value):
    def change(counts):
        counts[row] = value
        return counts

    return change


def test_the_rule_takes_good_reports(tmp_path):
    found = world_epidemics(write_world(tmp_path))
    assert list(found) == ["Good", "Other"]
    good = found["Good"]
    assert good.first_day == datetime.date(2020, 1, 22)
    assert good.shares.shape == (300, 3)
    np.testing.assert_allclose(good.shares.sum(1), 1)
    np.testing.assert_allclose(good.shares[2], np.array([2e6 - 4200, 4200 - 1111, 1111]) / 2e6)


def test_days_count_from_the_onset(tmp_path):
    found = world_epidemics(write_world(tmp_path, Good=4.05e6))
    assert found["Good"].first_day == datetime.date(2020, 1, 23)
    assert found["Other"].first_day == datetime.date(2020, 1, 22)


@pytest.mark.parametrize(
    "reason",
    [
        {"Good": 9e5},  # too few people
        {"Good": 6e6},  # the onset is so late that there are no 300 days
        {"Good": 6e7},  # there is no onset
        {"changed": ("confirmed", lambda c: np.where(np.arange(310) % 5, c, c - 100))},
        {"changed": ("recovered", lambda c: np.where(np.arange(310) % 5, c, c - 50))},
        {"changed": ("confirmed", with_row(100, 4000))},  # a correction downwards
        {"changed": ("recovered", with_row(slice(100, 310), 10_000 + 50 * np.arange(210)))},
        {"changed": ("deaths", lambda c: c + 25_000)},  # more removed than confirmed
    ],
)
def test_the_rule_leaves_bad_reports_out(tmp_path, reason):
    assert list(world_epidemics(write_world(tmp_path, **reason))) == ["Other"]


def test_a_country_of_the_paper_is_not_in_the_world(tmp_path):
    write_world(tmp_path)
    for file in (tmp_path / "covid_jhu").iterdir():
        file.write_text(file.read_text().replace("Good", "United Kingdom"))
    assert list(world_epidemics(tmp_path)) == ["Other"]


def test_tables_that_do_not_belong_together(tmp_path):
    later = {"deaths": datetime.date(2020, 1, 23)}
    with pytest.raises(DataError, match="have different days"):
        world_epidemics(write_world(tmp_path, first=later))
    write_world(tmp_path)
    deaths = tmp_path / "covid_jhu" / "time_series_covid19_deaths_global.csv"
    deaths.write_text(deaths.read_text().replace("Good", "Bad"))
    with pytest.raises(DataError, match="have different countries"):
        world_epidemics(tmp_path)


def test_listed_countries_that_are_not_in_the_tables(tmp_path):
    with pytest.raises(DataError, match="no usable reports of Albania"):
        covid.world(data_dir=write_world(tmp_path))


# Splits


@pytest.fixture(scope="module")
def eight(tmp_path_factory):
    return write_eight(tmp_path_factory.mktemp("eight"))


def parts(split):
    return split.train, split.validation, split.test


def test_the_published_windows(eight):
    split = covid.paper(data_dir=eight)
    assert [part.windows.number for part in parts(split)] == [150, 1, 2]
    assert [part.panel.ids for part in parts(split)] == [covid.TRAIN, covid.VALIDATION, covid.TEST]
    np.testing.assert_allclose(split.train.panel.times[0], 0.05 * split.train.raw[0].number)
    strict = covid.strict(data_dir=eight)
    assert [part.windows.number for part in parts(strict)] == [155, 31, 62]
    np.testing.assert_allclose(strict.train.panel.times[0], strict.train.raw[0].number)


def test_the_seed_decides_which_days_are_dropped(eight):
    one, same, other = (covid.strict(seed=seed, data_dir=eight) for seed in (0, 0, 1))
    for part, again, changed in zip(parts(one), parts(same), parts(other), strict=True):
        for first, second, third in zip(part.raw, again.raw, changed.raw, strict=True):
            assert len(first.number) == len(np.unique(first.number)) == 270
            np.testing.assert_array_equal(first.number, second.number)
            assert not np.array_equal(first.number, third.number)
    kept = {raw.number.tobytes() for part in parts(one) for raw in part.raw}
    assert len(kept) == 8  # other days in every country


def test_the_published_unit_has_seen_all_countries(eight):
    split = covid.paper(data_dir=eight)
    everything = [
        read_epidemic(eight / "covid_sir8" / f"sir_data_{country}.csv", country).shares
        for country in EIGHT
    ]
    np.testing.assert_allclose(split.unit, np.concatenate(everything).std(0))


def test_the_strict_unit_has_seen_the_training_countries_only(eight, tmp_path):
    shutil.copytree(eight, tmp_path, dirs_exist_ok=True)
    for i, country in enumerate((*covid.VALIDATION, *covid.TEST)):
        path = tmp_path / "covid_sir8" / f"sir_data_{country}.csv"
        write_sir(path, sir_rows(300, 10**5, seed=50 + i))
    for protocol, same in ((covid.strict, True), (covid.paper, False)):
        before, after = protocol(data_dir=eight), protocol(data_dir=tmp_path)
        assert not np.array_equal(before.test.panel.values, after.test.panel.values)
        assert np.array_equal(before.unit, after.unit) == same


def test_too_few_days_are_refused(tmp_path):
    write_eight(tmp_path, days=299)
    with pytest.raises(DataError, match="has 299 days, and 300 are needed"):
        covid.strict(data_dir=tmp_path)


def test_a_stride_of_nothing_is_refused(eight):
    with pytest.raises(ConfigError, match="stride must be a whole number of at least 1, but is 0"):
        covid.strict(stride=0, data_dir=eight)


# The real tables


@pytest.fixture(scope="module")
def real():
    folder = Path(os.environ.get("PHYSSM_DATA") or "nowhere")
    if not all((folder / name).is_dir() for name in ("covid_sir8", "covid_jhu")):
        pytest.skip("the tables of COVID-19 are not there: set PHYSSM_DATA to their folder")
    return folder


def test_the_listed_countries_are_those_of_the_rule(real):
    listed = world_parts()
    names = [name for part in listed.values() for name in part]
    assert len(names) == len(set(names)) == 43
    assert set(names) == set(world_epidemics(real))
    assert [len(listed[part]) for part in ("train", "validation", "test")] == [20, 8, 15]
    assert not set(names) & {*EIGHT, "United Kingdom"}


def test_shares_of_all_countries_add_up(real):
    for one in world_epidemics(real).values():
        np.testing.assert_allclose(one.shares.sum(1), 1, rtol=0, atol=1e-12)
        assert one.shares.min() >= 0
    for protocol in (covid.paper, covid.strict, covid.world):
        for part in parts(protocol(data_dir=real)):
            np.testing.assert_allclose(part.panel.values.sum(2), 1, rtol=0, atol=1e-12)


@pytest.mark.parametrize("country", ["Armenia", "Gabon", "Spain"])
def test_both_kinds_of_tables_say_the_same(real, country):
    path = real / "covid_sir8" / f"sir_data_{country}.csv"
    first = read_epidemic(path, country).first_day
    persons = read_table(path, time="Date", channels=["Susceptible", "Infected", "Removed"])[
        0
    ].values
    persons = persons[:-1]  # the last day repeats the one before
    counted = []
    for kind in KINDS:
        name = f"time_series_covid19_{kind}_global.csv"
        counts = read_counts(real / "covid_jhu" / name)
        start = (first - counts.first_day).days
        row = counts.countries.index(country)
        counted.append(counts.persons[row, start : start + len(persons)])
    confirmed, deaths, recovered = counted
    np.testing.assert_array_equal(persons[:, 2], deaths + recovered)
    np.testing.assert_array_equal(persons[:, 1], confirmed - deaths - recovered)
    people = persons[0].sum()
    np.testing.assert_array_equal(people - persons[:, 0], confirmed)
    theirs = read_populations(real / "covid_jhu" / PEOPLE)[country]
    assert people == pytest.approx(theirs, rel=0.02)
    assert confirmed[0] > 0.001 * people


def test_germany_has_no_infected(real):
    one = read_epidemic(real / "covid_sir8" / "sir_data_Germany.csv", "Germany")
    infected = np.rint(83_240_000 * one.shares[:300, 1])
    assert infected.max() == 37
    assert (infected <= 12).sum() == 241


def test_the_published_numbers_of_windows(real):
    assert [part.windows.number for part in parts(covid.paper(data_dir=real))] == [150, 1, 2]
    assert [part.windows.number for part in parts(covid.world(data_dir=real))] == [80, 32, 60]
