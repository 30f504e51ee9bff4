"""What the interface says of itself: to tools a description, to people a page to try it."""

import asyncio
import base64
import hashlib
from functools import cache

from common.messages import to_json

HTML = "text/html"


class Manual:
    """Makes the description when it is asked for first."""

    def __init__(self) -> None:
        self._described: bytes | None = None

    async def description(self) -> bytes:
        # All operations and fields are loaded for it, a second in which others are answered, too.
        if self._described is None:
            self._described = await asyncio.to_thread(_describe)
        return self._described


def _describe() -> bytes:
    from coordinator.rapi.openapi import describe  # needs most of the coordinator's modules

    return to_json(describe())


@cache
def page() -> tuple[bytes, dict[str, str]]:
    """Return the page, and headers by which nothing but what is in it is run or shown."""
    sums = [_sum(text) for text in (_STYLE, _SCRIPT)]
    policy = (
        f"default-src 'none'; style-src '{sums[0]}'; script-src '{sums[1]}'; connect-src 'self'; "
        "form-action 'none'; frame-ancestors 'none'; base-uri 'none'"
    )
    text = _PAGE.replace("STYLE", _STYLE).replace("SCRIPT", _SCRIPT)
    return text.encode(), {"Content-Security-Policy": policy, "X-Content-Type-Options": "nosniff"}


def _sum(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


_STYLE = """
body { font: 16px/1.4 system-ui, sans-serif; margin: 2rem auto; max-width: 60rem; padding: 0 1rem }
summary { cursor: pointer; padding: .2rem 0 }
summary b { display: inline-block; width: 5rem; font-family: monospace }
summary code { font-size: 1rem }
label { display: grid; grid-template-columns: 12rem 1fr; gap: .5rem; margin: .2rem 0 }
small { grid-column: 2; color: GrayText }
textarea { width: 100%; height: 6rem; font-family: monospace }
pre { background: color-mix(in srgb, currentcolor 8%, transparent); padding: .5rem; overflow: auto;
  max-height: 30rem }
:root { color-scheme: light dark }
"""
_SCRIPT = """
"use strict";
const make = (name, text = "", under = null) => {
  const element = document.createElement(name);
  element.textContent = text;
  if (under) under.append(element);
  return element;
};
const field = (form, name, note, needed) => {
  const label = make("label", name + (needed ? " *" : ""), form);
  const input = make("input", "", label);
  if (note) make("small", note, label);
  return input;
};
const login = () => {
  const [user, password] = ["user", "password"].map((id) => document.getElementById(id).value);
  const text = String.fromCharCode(...new TextEncoder().encode(`${user}:${password}`));
  return user ? { Authorization: `Basic ${btoa(text)}` } : {};
};
const show = (list, method, path, told) => {
  const details = make("details", "", list);
  const summary = make("summary", "", details);
  make("b", method.toUpperCase(), summary);
  make("code", path, summary);
  summary.append(" ", told.summary || "");
  const form = make("form", "", details);
  const inputs = (told.parameters || []).map((one) =>
    [one, field(form, one.name, one.description, one.required)]);
  const schema = told.requestBody?.content["application/json"].schema;
  const body = schema && make("textarea", "", form);
  if (body) {
    body.placeholder = Object.keys(schema.properties || {}).join(", ");
  }
  make("button", "Send", form);
  const answer = make("pre", "", details);
  answer.hidden = true;
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    let address = path;
    const query = new URLSearchParams();
    for (const [one, input] of inputs) {
      if (one.in === "path") {
        address = address.replace(`{${one.name}}`, encodeURIComponent(input.value));
      } else if (input.value) query.append(one.name, input.value);
    }
    const asked = { method: method.toUpperCase(), headers: login() };
    if (body && body.value.trim() && method !== "get") {
      asked.body = body.value;
      asked.headers["Content-Type"] = "application/json";
    }
    answer.hidden = false;
    answer.textContent = "…";
    try {
      const got = await fetch(address + (query.size ? `?${query}` : ""), asked);
      let text = await got.text();
      try { text = JSON.stringify(JSON.parse(text), null, 2); } catch { }
      answer.textContent = `${got.status} ${got.statusText}\\n\\n${text}`;
    } catch (error) { answer.textContent = String(error); }
  });
};
const begin = async () => {
  const told = await (await fetch("openapi.json")).json();
  document.getElementById("about").textContent = `${told.info.description} ${told.info.version}`;
  const lists = {};
  for (const [path, methods] of Object.entries(told.paths)) {
    for (const [method, one] of Object.entries(methods)) {
      if (path === "/2/events") continue;
      const tag = one.tags[0];
      if (!lists[tag]) {
        lists[tag] = make("section", "", document.getElementById("all"));
        make("h2", tag, lists[tag]);
      }
      show(lists[tag], method, path, one);
    }
  }
};
begin();
"""
_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Gantry</title>
<meta name="viewport" content="width=device-width"><style>STYLE</style></head><body>
<h1>Gantry</h1><p id="about"></p>
<p>A description for tools is at <a href="openapi.json">openapi.json</a>.</p>
<label>User<input id="user" autocomplete="username"></label>
<label>Password<input id="password" type="password" autocomplete="current-password"></label>
<main id="all"></main><script>SCRIPT</script></body></html>
"""
