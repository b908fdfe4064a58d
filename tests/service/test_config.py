from __future__ import annotations

import tomllib
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import armlet
from armlet.errors import InvalidValueError
from armlet.service.config import ControlConfig, KeyConfig, Limits, LoopConfig, PersonalizerConfig, ServerConfig
from armlet.service.keys import digest, new_key
from armlet.service.preview import preview
from armlet.service.settings import load, to_toml, variables

HASH = digest("armlet_test").hex()
FULL = f"""
store = "shop.db"

[listen]
host = "0.0.0.0"
port = 9000

[loops.home]
arms = ["sale", "new", 3]
features = ["1", "age", "basket"]
categories = {{ country = ["fr", "de"] }}
policy = "LinUCB"
policy_settings = {{ alpha = 0.5 }}
window = 3600
default_reward = 0
aggregation = "last"
early_window = 60
reward_range = [0, 5]
feature_range = {{ age = [0, 120], basket = [0, 1000, "clip"] }}
objective = "max"
seed = 7
control = {{ arm = "sale", share = 0.2 }}
epoch = 1000
on_change = "apply"

[loops."other page"]
arms = [1, 2]
dim = 2
epoch = {{ seconds = 3600 }}

[loops.router]
arms = ["small", 2]
features = ["tokens"]
outcomes = {{ quality = 1.0, cost = -40.0 }}
known = {{ cost = {{ small = 0.001, 2 = 0.03 }} }}
budget = {{ outcome = "cost", total = 250.0, horizon = 100000 }}
window = 60
default_reward = {{ quality = 0.5 }}
reward_range = {{ quality = [0, 1] }}

[loops.films]
features = ["age"]
action_features = ["year"]
action_categories = {{ genre = ["crime", "horror"] }}
policy = "SharedThompson"
policy_settings = {{ draws = 10, interactions = [["age", "year"]] }}

[loops.news]
hashed = 8
action_hashed = 6

[personalizer]
loop = "films"
apprentice = ["films", "news"]

[keys.web]
sha256 = "{HASH}"
scopes = ["decide", "reward"]
loops = ["home"]
propensity = false
expires = 2027-01-31T00:00:00Z

[limits]
body = 1024
deadline = 0.5

[log]
format = "json"
"""


def read(tmp_path: Path, text: str, environ: dict[str, str] | None = None) -> ServerConfig:
    path = tmp_path / "armlet.toml"
    path.write_text(text, encoding="utf-8")
    return load(path, environ or {})


def test_a_file_says_everything(tmp_path: Path) -> None:
    config = read(tmp_path, FULL)
    home, other, router, films, news = config.loops
    assert (config.store, config.listen.host, config.listen.port) == ("shop.db", "0.0.0.0", 9000)
    assert home.arms == ("sale", "new", 3)
    assert home.spec.encoder is not None
    assert home.spec.encoder.features == ("1", "age", "basket", "country=de", "country=fr", "country=other")
    assert home.spec.policy == armlet.LinUCB(alpha=0.5)
    assert (home.window, home.default_reward, home.aggregation, home.early_window) == (3600, 0, "last", 60)
    assert (home.reward_range, home.seed, home.on_change) == ((0.0, 5.0), 7, "apply")
    assert home.feature_range == {"age": [0, 120], "basket": [0, 1000, "clip"]}
    assert (home.epoch, other.epoch) == (1000, timedelta(hours=1))
    assert home.control == ControlConfig(arm="sale", share=0.2)
    assert (other.name, other.arms, other.dim, other.spec.encoder) == ("other page", (1, 2), 2, None)
    assert (router.outcomes, router.known) == ({"quality": 1.0, "cost": -40.0}, {"cost": {"small": 0.001, 2: 0.03}})
    assert router.budget == armlet.Budget("cost", total=250.0, horizon=100_000)
    assert (router.default_reward, router.reward_range) == ({"quality": 0.5}, {"quality": (0.0, 1.0)})
    assert (films.arms, films.has_actions, news.has_actions, home.has_actions) == ((), True, True, False)
    assert films.spec.action_encoder is not None
    assert films.spec.action_encoder.features == ("year", "genre=crime", "genre=horror", "genre=other")
    encoders: object = (films.spec.encoder, news.spec.encoder)
    assert encoders == (None, armlet.HashedFeatures(8))
    made: object = films.spec.policy
    assert made == armlet.SharedThompson(draws=10, interactions=[("age", "year")])
    assert config.personalizer == PersonalizerConfig(loop="films", apprentice=("films", "news"))
    assert config.keys[0].grant.expires == datetime(2027, 1, 31, tzinfo=UTC).timestamp()
    assert not config.keys[0].grant.propensity
    assert (config.limits.body, config.limits.deadline, config.limits.headers) == (1024, 0.5, 16 * 1024)
    assert config.log.format == "json"


def test_what_is_printed_is_read_as_the_same_but_for_secrets(tmp_path: Path) -> None:
    config = read(tmp_path, FULL)
    printed = to_toml(config)
    assert HASH not in printed
    assert "seed = 7" not in printed
    table = tomllib.loads(printed)
    table["keys"]["web"]["sha256"] = HASH
    table["loops"]["home"]["seed"] = 7
    assert load(None, {}, **table) == config


def test_the_printed_variables_are_those_that_are_read(tmp_path: Path) -> None:
    config = read(tmp_path, FULL)
    printed = {line.rpartition("# ")[2] for line in to_toml(config).splitlines() if "# ARMLET_" in line}
    known = variables(tomllib.loads(FULL))
    within = ("_CONTROL_", "_BUDGET_")  # printed in one line
    assert printed == {name for name in known if not name.endswith("_FILE") and not any(map(name.__contains__, within))}


@pytest.mark.parametrize(
    ("name", "text", "path", "value"),
    [
        ("ARMLET_STORE", "postgresql://db/shop", ("store",), "postgresql://db/shop"),
        ("ARMLET_LISTEN_PORT", "8081", ("listen", "port"), 8081),
        ("ARMLET_LIMITS_DEADLINE", "1.5", ("limits", "deadline"), 1.5),
        ("ARMLET_LOG_ACCESS", "true", ("log", "access"), True),
        ("ARMLET_LOG_LEVEL", "error", ("log", "level"), "error"),
    ],
)
def test_a_variable_wins_over_the_file(
    tmp_path: Path, name: str, text: str, path: tuple[str, ...], value: object
) -> None:
    found: Any = read(tmp_path, FULL, {name: text})
    for part in path:
        found = getattr(found, part)
    assert found == value


def test_scalars_of_loops_and_keys_are_variables_too(tmp_path: Path) -> None:
    config = read(
        tmp_path,
        FULL,
        {
            "ARMLET_LOOPS_HOME_WINDOW": "60",
            "ARMLET_LOOPS_HOME_CONTROL_SHARE": "0.5",
            "ARMLET_LOOPS_HOME_EPOCH": "500",
            "ARMLET_LOOPS_HOME_DEFAULT_REWARD": "0.25",
            "ARMLET_LOOPS_ROUTER_BUDGET_TOTAL": "300",
            "ARMLET_LOOPS_OTHER_PAGE_ON_CHANGE": "apply",
            "ARMLET_KEYS_WEB_EXPIRES": "2028-01-01T00:00:00Z",
            "ARMLET_KEYS_WEB_PROPENSITY": "true",
        },
    )
    assert (config.loops[0].window, config.loops[0].epoch, config.loops[0].default_reward) == (60, 500, 0.25)
    assert config.loops[2].budget == armlet.Budget("cost", total=300.0, horizon=100_000)
    assert config.loops[0].control == ControlConfig(arm="sale", share=0.5)
    assert config.loops[1].on_change == "apply"
    assert config.keys[0].expires == datetime(2028, 1, 1, tzinfo=UTC)
    assert config.keys[0].propensity


def test_secrets_may_have_files_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "store").write_text("postgresql://armlet:hush@db/shop\n")
    (tmp_path / "hash").write_text(digest("another").hex() + "\n")
    (tmp_path / "seed").write_text("12345678901234567890\n")
    text = FULL.replace('store = "shop.db"', f'store_file = "{tmp_path / "hash"}"').replace("seed = 7", "")
    environ = {
        "ARMLET_STORE_FILE": str(tmp_path / "store"),
        "ARMLET_KEYS_WEB_SHA256_FILE": str(tmp_path / "hash"),
        "ARMLET_LOOPS_HOME_SEED_FILE": str(tmp_path / "seed"),
    }
    config = read(tmp_path, text, environ)
    assert config.store == "postgresql://armlet:hush@db/shop"
    assert config.keys[0].sha256 == digest("another").hex()
    assert config.loops[0].seed == 12345678901234567890
    assert "hush" not in to_toml(config) + repr(config)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[limits]\nbody", "[limits]\nboddy", r"armlet.toml: \[limits\] boddy is not a setting; did you mean 'body'\?"),
        ("[limits]", "[limit]", r"armlet.toml: limit is not a setting; did you mean 'limits'\?"),
        ("window = 3600", "windows = 3600", r"armlet.toml: \[loops.home\] windows is not a setting; did you mean"),
        ("window = 3600", "window = -1", r"armlet.toml: \[loops.home\] window is -1; give seconds"),
        ("window = 3600", "", r"\[loops.home\] window is None and default_reward is 0; give both or neither"),
        ("port = 9000", "port = 70000", r"\[listen\] port is 70000; give a whole number of at most 65535"),
        ('"LinUCB"', '"LinUBC"', r"\[loops.home\] there is no policy 'LinUBC'; did you mean 'LinUCB'\?"),
        ("{ alpha = 0.5 }", "{ alfa = 0.5 }", r"\[loops.home\] policy_settings has 'alfa'; did you mean 'alpha'\?"),
        ('scopes = ["decide", "reward"]', 'scopes = ["decyde"]', r"\[keys.web\] scopes has 'decyde'; did you mean"),
        ('arm = "sale"', 'arm = "sail"', r"\[loops.home\] control.arm is 'sail'; did you mean 'sale'\?"),
        ("share = 0.2", "share = 2", r"\[loops.home.control\] share is 2; give a share between 0 and 1"),
        ('["sale", "new", 3]', '["sale", "sale"]', r"\[loops.home\] arms has sale more than once"),
        ('["sale", "new", 3]', '"sale"', r"\[loops.home\] arms is the string 'sale'; give a list"),
        ('arms = [1, 2]', "", r"\[loops.other page\] arms is missing; give it"),
        ("body = 1024", "body = true", r"\[limits\] body is True; give a whole number"),
        ('format = "json"', 'format = "xml"', r"\[log\] format is 'xml'; choose 'text' or 'json'"),
        ('store = "shop.db"', "", r"armlet.toml: store is missing; give it"),
        ('store = "shop.db"', "store = 3", r"armlet.toml: store is 3; give text, such as 'shop.db'"),
        ("[keys.web]", "[[keys.web]]", r"\[keys\] web is \[.*\]; give a table"),
        (HASH, "armlet_oh_the_key_itself", r"\[keys.web\] sha256 is not the SHA-256 of a key"),
        ("expires = 2027-01-31T00:00:00Z", 'expires = "soon"', r"\[keys.web\] expires is 'soon'; give a date"),
        ("quality = 1.0, cost", "quality = 1.0, price", r"\[loops.router\] known has 'cost', which is no outcome"),
        ("cost = -40.0", "cost = true", r"\[loops.router\] outcomes\['cost'\] is True; give a finite number"),
        ("small = 0.001, ", "", r"\[loops.router\] known has no cost of arm 'small'; give it for every arm"),
        ("small = 0.001, 2 = 0.03", "", r"\[loops.router\] known\['cost'\] is \{\}; give the value for every arm"),
        ("{ small = 0.001, 2 = 0.03 }", "0.03", r"\[loops.router\] known.cost is 0.03; give a"),
        ("{ cost = { small = 0.001, 2 = 0.03 } }", "3", r"\[loops.router\] known is 3; give a table for"),
        (
            "{ small = 0.001, 2 = 0.03 }",
            '[["small", 1], ["small", 2]]',
            r"\[loops.router\] known.cost has 'small' twice; give each arm once",
        ),
        ("{ small = 0.001, 2 = 0.03 }", '[["small"]]', r"\[loops.router\] known.cost has .*; give pairs of an arm"),
        ("total = 250.0", "total = 0", r"\[loops.router.budget\] total is 0; give a"),
        ("total = 250.0", "totle = 250", r"\[loops.router.budget\] totle is not a setting; did you mean 'total'\?"),
        ('outcome = "cost", total = 250.0', "total = 250", r"\[loops.router.budget\] outcome is missing; give it"),
        ("horizon = 100000", "hard = true", r"\[loops.router.budget\] Budget has neither horizon nor period"),
        ("{ quality = 0.5 }", "0.5", r"\[loops.router\] default_reward is 0.5, but the loop has outcomes"),
        ("epoch = 1000", "epoch = 0", r"\[loops.home\] epoch is 0; give a number of decisions, at least 1"),
        ("seconds = 3600", "hours = 1", r"\[loops.other page\] epoch is \{'hours': 1\}; give a number of decisions"),
        ("dim = 2", 'dim = 2\nfeatures = ["age"]', r"\[loops.other page\] dim is 2, but features have names"),
        ("action_hashed = 6", "action_dim = 0", r"\[loops.news\] action_dim is 0; give a whole number of at least 1"),
        ("action_hashed = 6", "", r"\[loops.news\] arms is missing; give it, or action_features"),
        ("action_hashed = 6", "action_hashed = 6\naction_dim = 2", r"\[loops.news\] action_dim is 2, but features"),
        ("hashed = 8", 'hashed = 8\nfeatures = ["a"]', r"\[loops.news\] hashed is 8, which takes any names, but"),
        ("hashed = 8", "hashed = 4096", r"\[loops.news\] n is 4096; give at most 511"),
        ('"SharedThompson"', '"LinUCB"', r"\[loops.films\] policy_settings has 'draws'"),
        ('["age", "year"]]', '["agee", "year"]]', r"\[loops.films\] interactions has 'agee'"),
        ('loop = "films"', "loop = 3", r"\[personalizer\] loop is 3; give text"),
        ('["films", "news"]', '"films"', r"\[personalizer\] apprentice is the string 'films'; give a list"),
        ("apprentice =", "apprentices =", r"\[personalizer\] apprentices is not a setting; did you mean 'apprentice'"),
    ],
)  # fmt: skip
def test_a_wrong_setting_is_named_with_its_value_and_the_fix(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in FULL
    with pytest.raises(InvalidValueError, match=message):
        read(tmp_path, FULL.replace(old, new))


def test_a_key_in_place_of_its_hash_is_not_repeated(tmp_path: Path) -> None:
    key = new_key()
    with pytest.raises(InvalidValueError) as error:
        read(tmp_path, FULL.replace(HASH, key))
    assert key not in str(error.value)


@pytest.mark.parametrize(
    ("environ", "message"),
    [
        ({"ARMLET_LIMIT_BODY": "1"}, "ARMLET_LIMIT_BODY is not a setting; did you mean 'ARMLET_LIMITS_BODY'"),
        ({"ARMLET_LIMITS_BODY": "1 MB"}, "ARMLET_LIMITS_BODY is '1 MB'; give a whole number"),
        ({"ARMLET_LIMITS_BODY": "0"}, r"ARMLET_LIMITS_BODY: \[limits\] body is 0; give a whole number of at least 1"),
        ({"ARMLET_LOG_ACCESS": "yes"}, "ARMLET_LOG_ACCESS is 'yes'; give true or false"),
        ({"ARMLET_STORE_FILE": "/nowhere"}, "ARMLET_STORE_FILE is '/nowhere', which cannot be read: No such file"),
        ({"ARMLET_STORE": "a.db", "ARMLET_STORE_FILE": "/dev/null"}, "ARMLET_STORE_FILE and ARMLET_STORE are set"),
        ({"ARMLET_LOOPS_SHOP_WINDOW": "1"}, "ARMLET_LOOPS_SHOP_WINDOW is not a setting"),
    ],
)
def test_a_wrong_variable_is_named(tmp_path: Path, environ: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidValueError, match=message):
        read(tmp_path, FULL, environ)


def test_variables_of_the_library_and_its_client_are_not_settings(tmp_path: Path) -> None:
    assert read(tmp_path, FULL, {"ARMLET_CACHE": "/tmp", "ARMLET_KEY": "armlet_x", "OTHER": "1"}) == read(
        tmp_path, FULL
    )


def test_variables_of_kubernetes_are_not_settings_but_a_misspelt_one_is_told(tmp_path: Path) -> None:
    links = {
        "ARMLET_SERVICE_HOST": "10.0.0.1",
        "ARMLET_SERVICE_PORT": "8080",
        "ARMLET_SERVICE_PORT_HTTP": "8080",
        "ARMLET_PORT": "tcp://10.0.0.1:8080",
        "ARMLET_PORT_8080_TCP": "tcp://10.0.0.1:8080",
        "ARMLET_PORT_8080_TCP_ADDR": "10.0.0.1",
        "ARMLET_WEB_SERVICE_HOST": "10.0.0.2",
        "ARMLET_WEB_PORT": "tcp://10.0.0.2:80",
    }
    assert read(tmp_path, FULL, links) == read(tmp_path, FULL)
    with pytest.raises(InvalidValueError, match="ARMLET_PORT is not a setting"):
        read(tmp_path, FULL, {"ARMLET_PORT": "8080"})


def test_a_file_that_is_not_toml_is_refused_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(InvalidValueError, match=r"armlet.toml is not valid TOML: .*line 2"):
        read(tmp_path, "\nstore = =\n")


def test_names_with_one_variable_are_refused(tmp_path: Path) -> None:
    loop = 'arms = ["a", "b"]\ndim = 1\n'
    with pytest.raises(InvalidValueError, match="'a_b' and 'a-b' have the variable ARMLET_LOOPS_A_B"):
        read(tmp_path, f'store = "s.db"\n[loops.a-b]\n{loop}[loops.a_b]\n{loop}')


def test_without_keys_only_loopback() -> None:
    key = KeyConfig(name="web", sha256=HASH, scopes=("decide",))
    with pytest.raises(InvalidValueError, match=r"listen.host is '0.0.0.0', where others can reach it.*no keys"):
        load(None, {}, store="shop.db", listen={"host": "0.0.0.0"})
    for listen in ({"host": "localhost"}, {"host": "::1"}, {"host": "0.0.0.0", "socket": "/run/armlet.sock"}):
        assert load(None, {}, store="shop.db", listen=listen).keyring.anonymous is not None
    assert ServerConfig(store="shop.db", keys=(key,)).keyring.anonymous is None


def test_two_keys_cannot_have_one_hash() -> None:
    keys = {name: {"sha256": HASH, "scopes": ["decide"]} for name in ("a", "b")}
    with pytest.raises(InvalidValueError, match="keys has one sha256 twice"):
        load(None, {}, store="shop.db", keys=keys)


@pytest.mark.parametrize("name", Limits.__slots__)
def test_every_limit_must_be_positive(name: str) -> None:
    with pytest.raises(InvalidValueError, match=f"{name} is -1"):
        Limits(**{name: -1})


# ---- what starting would do


def plans(tmp_path: Path, **settings: Any) -> list[str]:
    loop = LoopConfig(**{"name": "home", "arms": ("a", "b"), "features": ("age",), "seed": 1, **settings})
    return [str(plan) for plan in preview(ServerConfig(store=str(tmp_path / "shop.db"), loops=(loop,)))[1]]


def test_a_preview_says_what_would_become_of_each_loop_and_changes_nothing(tmp_path: Path) -> None:
    assert plans(tmp_path) == ["loop 'home' would be made"]
    assert not (tmp_path / "shop.db").exists()
    with armlet.open_store(tmp_path / "shop.db") as store:
        store.loop("home", arms=["a", "b"], features=["age"], seed=1)
        store.loop("search", arms=["a", "b"], dim=1)
        as_it_is = "loop 'search' is in the store, and is served as it is"
        assert plans(tmp_path) == ["loop 'home' stays as it is", as_it_is]  # next to the process that has it open
        change = {"window": 60.0, "default_reward": 0.0}
        assert plans(tmp_path, **change, on_change="apply")[0] == "loop 'home' would change: window, default_reward"
        assert "would be refused: window is 60.0, but loop 'home' has None" in plans(tmp_path, **change)[0]
        assert plans(tmp_path, arms=("b", "c"))[0] == "loop 'home' would change: arm 'c' is new, arm 'a' is retired"
        assert "would be refused: seed is 2" in plans(tmp_path, seed=2)[0]
        assert "would be refused: epoch is 10" in plans(tmp_path, epoch=10)[0]
        assert "would be refused: outcomes is" in plans(tmp_path, outcomes={"quality": 1.0, "cost": -1.0})[0]
        assert plans(tmp_path)[0] == "loop 'home' stays as it is"


def test_a_preview_says_what_would_become_of_a_loop_with_actions(tmp_path: Path) -> None:
    how: dict[str, Any] = {"arms": (), "action_features": ("year",)}
    assert plans(tmp_path, **how) == ["loop 'home' would be made"]
    with armlet.open_store(tmp_path / "shop.db") as store:
        store.loop("home", features=["age"], action_features=["year"], seed=1)
    assert plans(tmp_path, **how) == ["loop 'home' stays as it is"]
    window = {"window": 60.0, "default_reward": 0.0, "on_change": "apply"}
    assert plans(tmp_path, **how, **window) == ["loop 'home' would change: window, default_reward"]
    assert "would be refused: action_features is" in plans(tmp_path, arms=(), action_features=("date",))[0]
    assert "would be refused" in plans(tmp_path)[0]


def test_a_preview_says_what_would_change_of_outcomes(tmp_path: Path) -> None:
    how: dict[str, Any] = {
        "outcomes": {"quality": 1.0, "cost": -40.0},
        "known": {"cost": {"a": 0.001, "b": 0.03}},
        "budget": armlet.Budget("cost", total=5.0, horizon=100),
    }
    with armlet.open_store(tmp_path / "shop.db") as store:
        store.loop("home", arms=["a", "b"], features=["age"], seed=1, **how)
    assert plans(tmp_path, **how) == ["loop 'home' stays as it is"]
    other = {
        "outcomes": {"quality": 1.0, "cost": -20.0},
        "known": {"cost": {"a": 0.002, "b": 0.03}},
        "budget": armlet.Budget("cost", total=9.0, horizon=100),
    }
    assert plans(tmp_path, **other, on_change="apply") == ["loop 'home' would change: outcomes, known, budget"]
    assert "would be refused: outcomes is" in plans(tmp_path, **other)[0]
