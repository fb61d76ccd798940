"""The arguments that code parses, and parameters that are written as such."""

import argparse
import ast

import pytest

from dcos_tensorflow.job_code.arguments import ALWAYS, AUTO, NEVER, arguments_of, filled
from dcos_tensorflow.job_code.names import names_in

ARGPARSE = """
parser.add_argument("--lr", "-l", type=float, default=0.1)
parser.add_argument("--batch-size", type=int)
parser.add_argument("--augment", action="store_true")
parser.add_argument("--no-shuffle", dest="shuffle", action="store_false")
parser.add_argument("--warm", action=argparse.BooleanOptionalAction)
parser.add_argument("--layers", nargs="+", type=int)
parser.add_argument("--tag", action="append")
parser.add_argument("positional")
"""
CLICK = """
@click.command()
@click.option("--lr", default=0.1)
@click.option("--layers", multiple=True)
@click.option("--augment", is_flag=True)
@click.option("--warm/--no-warm", default=False)
def main(lr, layers, augment, warm): ...
"""
ABSL = """
flags.DEFINE_float("lr", 0.1, "")
tf.compat.v1.flags.DEFINE_boolean("warm", False, "")
"""
TYPER = """
import typer
app = typer.Typer()
@app.command()
def main(data: str, batch_size: int = 8, tags: list[str] = [], warm: bool = False,
         lr: float = typer.Option(0.1, "--rate"), *, out: Annotated[str, typer.Option("--to")]): ...
def other(units: int = 3): ...
"""
FIRE = "import fire\ndef main(lr, units=3): ...\nfire.Fire(main)\n"


def written(source: str, parameters: dict[str, object], mode: str = AUTO, *given: str) -> list[str]:
    return arguments_of(parameters, names_in(ast.parse(source)).options, mode, given)


@pytest.mark.parametrize(
    ("source", "parameters", "arguments"),
    [
        (ARGPARSE, {"lr": 0.001, "units": 3}, ["--lr", "0.001"]),
        (ARGPARSE, {"batch_size": 32}, ["--batch-size", "32"]),
        (ARGPARSE, {"augment": True}, ["--augment"]),
        (ARGPARSE, {"augment": False}, []),
        (ARGPARSE, {"no_shuffle": False}, ["--no-shuffle"]),
        (ARGPARSE, {"warm": False}, ["--no-warm"]),
        (ARGPARSE, {"layers": [64, 32]}, ["--layers", "64", "32"]),
        (ARGPARSE, {"tag": ["a", "b"]}, ["--tag", "a", "--tag", "b"]),
        (ARGPARSE, {"lr": None}, []),
        (ARGPARSE, {"lr": "-x"}, ["--lr=-x"]),
        (ARGPARSE, {"lr": -1e-3}, ["--lr", "-0.001"]),
        (ARGPARSE, {"lr": [1, 2]}, ["--lr", "[1, 2]"]),
        (ARGPARSE, {"positional": 1}, []),
        (CLICK, {"lr": 0.5, "layers": [1, 2]}, ["--lr", "0.5", "--layers", "1", "--layers", "2"]),
        (CLICK, {"augment": True, "warm": False}, ["--augment", "--no-warm"]),
        (ABSL, {"lr": 0.5, "warm": True}, ["--lr", "0.5", "--warm=true"]),
        (TYPER, {"batch_size": 4, "warm": False}, ["--batch-size", "4", "--no-warm"]),
        (TYPER, {"tags": ["a", "b"]}, ["--tags", "a", "--tags", "b"]),
        (TYPER, {"rate": 0.5, "lr": 0.5, "to": "x"}, ["--rate", "0.5", "--to", "x"]),
        (TYPER, {"data": "x", "units": 4}, []),
        (FIRE, {"lr": 0.5, "units": 4}, ["--lr", "0.5", "--units", "4"]),
        (FIRE.replace("fire", "blaze"), {"lr": 0.5}, []),
        ("print(1)", {"lr": 0.5}, []),
    ],
)
def test_parameters_are_written_as_the_code_parses_them(
    source: str, parameters: dict[str, object], arguments: list[str]
) -> None:
    assert written(source, parameters) == arguments


def test_argparse_reads_what_is_written() -> None:
    parser = argparse.ArgumentParser()
    exec(ARGPARSE, {"parser": parser, "argparse": argparse})
    parameters = {"lr": 1e-5, "batch_size": 8, "augment": True, "layers": [2, 1], "warm": True}
    read = vars(parser.parse_args([*written(ARGPARSE, parameters), "x"]))
    assert {name: read[name] for name in parameters} == parameters


def test_where_that_is_asked_for_all_parameters_are_arguments_or_none() -> None:
    parameters = {"lr": 0.5, "flag": True, "odd name": 1, "worker.cpus": 2}
    assert written("print(1)", parameters, ALWAYS) == ["--lr", "0.5", "--flag", "True"]
    assert written(ARGPARSE, parameters, NEVER) == []


def test_what_is_given_already_is_left_out() -> None:
    assert written(ARGPARSE, {"lr": 1, "batch_size": 2}, AUTO, "--lr=5", "--batch-size", "6") == []


@pytest.mark.parametrize(
    ("argument", "text"),
    [
        ("{lr}", "0.5"),
        ("--rate={lr}", "--rate=0.5"),
        ("{layers}", "[64, 32]"),
        ("{warm}", "True"),
        ("{name}-{lr}", "a b-0.5"),
        ('{"optimizer":{"lr":{lr}}}', '{"optimizer":{"lr":0.5}}'),
        ("{{lr}}", "{lr}"),
        ("{other} {} {0} {a b} {{", "{other} {} {0} {a b} {{"),
    ],
)
def test_an_argument_is_filled_with_the_parameters_that_it_names(argument: str, text: str) -> None:
    parameters = {"lr": 0.5, "layers": [64, 32], "warm": True, "name": "a b"}
    assert filled(argument, parameters) == text
