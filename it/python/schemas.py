"""Checks events in the formats of SIEMs by packages that are not ours:

    schemas.py FOLDER

    ocsf-1.8.jsonl, ocsf-1.3.jsonl   the JSON schemas of ocsf-json-schema: no member that they do not know
    cef.txt                          cefp parses each line; cefevent knows the keys, their types and lengths
    otlp.jsonl                       names of GenAI attributes of opentelemetry-semantic-conventions

facts.jsonl says line by line what an event is about. Prints what was checked as
JSON, or the first faults, and exits 1.
"""

import json
import re
import sys
from pathlib import Path

import cefp
import jsonschema_rs
from cefevent.extensions import extension_dictionary
from ocsf_json_schema import OcsfJsonSchemaEmbedded, get_ocsf_schema
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes

faults = []


def fault(*what):
    faults.append(" ".join(str(w) for w in what))
    if len(faults) >= 5:
        finish({})


def finish(done):
    if faults:
        print("\n".join(f[:2000] for f in faults), file=sys.stderr)
        sys.exit(1)
    print(json.dumps(done))


def lines(path):
    text = path.read_bytes().decode("utf-8", "strict")
    split = text.splitlines()  # by every character that some reader takes for the end of a line
    if len(split) != text.count("\n"):
        fault(path.name, "has", len(split), "lines,", text.count("\n"), "line feeds")
    return split


def check_ocsf(folder, version, profiles):
    schema = OcsfJsonSchemaEmbedded(get_ocsf_schema(version=version)).get_class_schema("api_activity", profiles=profiles)
    validator = jsonschema_rs.Draft202012Validator(schema)
    n = 0
    for line, fact in zip(lines(folder / f"ocsf-{version[:3]}.jsonl"), facts, strict=True):
        event = json.loads(line)
        for error in validator.iter_errors(event):
            fault("ocsf", version, error.message, error.instance_path, line)
        said = event["metadata"]["uid"], event["metadata"].get("sequence"), event["metadata"].get("tenant_uid", "")
        want = fact["id"], fact.get("seq"), fact["tenant"]
        if said != want:
            fault("ocsf", version, said, "is not", want)
        n += 1
    return n


BREAKS = "\n\v\f\x1c\x1d\x1e\x85\u2028\u2029"


def as_cef(text):
    """What a value is once it went through CEF, which has no other escapes."""
    text = "".join("\n" if c in BREAKS else c for c in text)
    return "".join(c if c in "\r\n" or not (c < " " or "\x7f" <= c < "\xa0") else " " for c in text)


def check_cef(folder, keys):
    n = 0
    for line, fact in zip(lines(folder / "cef.txt"), facts, strict=True):
        parsed = cefp.parse(line)
        extension = parsed["extension"]
        strange = extension.keys() - keys
        if strange:
            fault("cef: forged", strange, line)
        for key, want in (("cs1", fact["tenant"]), ("cs2", fact.get("rowHash")), ("suid", fact.get("user")), ("cn1", fact.get("seq"))):
            got, want = extension.get(key), None if want in (None, "") else as_cef(str(want))
            if got != want and not (got and want and got.endswith("…") and want.startswith(got[:-1])):
                fault("cef:", key, "is", repr(got), "not", repr(want), line)
        for key, text in extension.items():
            known = extension_dictionary.get(key)
            if known is None and key != "outcome" and not re.fullmatch("LedgerlakeExport[A-Za-z]+", key):
                fault("cef: no such key", key)
            if known and known["length"] and len(text) > known["length"]:
                fault("cef:", key, "has", len(text), "characters, at most", known["length"])
            if known and known["data_type"][0] in ("Long", "Integer", "TimeStamp") and not re.fullmatch("-?[0-9]+", text):
                fault("cef:", key, "is no number:", text)
            if re.fullmatch("c[sn][1-6]", key) and not extension.get(key + "Label"):
                fault("cef:", key, "has no label")
        if not 0 <= int(parsed["severity"]) <= 10:
            fault("cef: severity", parsed["severity"])
        n += 1
    return n


def check_otlp(folder):
    known = {v for k, v in vars(gen_ai_attributes).items() if k.startswith("GEN_AI_") and isinstance(v, str)}
    source = Path(gen_ai_attributes.__file__).read_text()
    old = {m[1] for m in re.finditer(r'^\w+: Final = "([^"]+)"\n"""\n(Deprecated.*?)"""', source, re.M | re.S)}
    seen = set()
    for line in lines(folder / "otlp.jsonl"):
        seen.update(a["key"] for a in json.loads(line)["attributes"])
    for key in seen:
        if key.startswith("gen_ai.") and (key not in known or key in old):
            fault("otlp: no such attribute", key)
    return len(seen)


folder = Path(sys.argv[1])
facts = [json.loads(line) for line in (folder / "facts.jsonl").read_text().split("\n") if line]
keys = json.loads((folder / "keys.json").read_text())
finish({
    "ocsf-1.8": check_ocsf(folder, "1.8.0", ["ai_operation"]),
    "ocsf-1.3": check_ocsf(folder, "1.3.0", []),
    "cef": check_cef(folder, set(keys["cef"])),
    "otlp": check_otlp(folder),
})
