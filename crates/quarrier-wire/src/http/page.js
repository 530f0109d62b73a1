"use strict";
(() => {
  const at = (id) => document.getElementById(id);
  const make = (name, text, kind) => {
    const node = document.createElement(name);
    if (text !== undefined) node.textContent = text;
    if (kind) node.className = kind;
    return node;
  };
  const units = ["", "K", "M", "G", "T"];
  const short = (number, step) => {
    let place = 0;
    while (number >= step && place < units.length - 1) { number /= step; place += 1; }
    return (number >= 100 || place === 0 ? number.toFixed(0) : number.toPrecision(3)) + " " + units[place];
  };
  const count = (number) => short(number, 1000).trim();
  const bytes = (number) => short(number, 1024).trim() + "B";
  const time = (seconds) => seconds < 1 ? (seconds * 1000).toFixed(0) + " ms"
    : seconds < 120 ? seconds.toFixed(1) + " s"
    : seconds < 7200 ? (seconds / 60).toFixed(0) + " min" : (seconds / 3600).toFixed(1) + " h";

  const fill = (id, rows, none) => {
    const body = at(id).querySelector("tbody");
    body.replaceChildren(...rows.map((cells) => {
      const row = make("tr");
      row.append(...cells.map(([text, kind]) => make("td", text, kind)));
      return row;
    }));
    at(id + "-none").hidden = rows.length > 0;
    at(id).hidden = rows.length === 0;
  };

  let before = null;
  const past = [];
  const show = (now) => {
    const moment = performance.now() / 1000;
    const rate = (name) => before ? Math.max(0, now[name] - before.now[name]) / (moment - before.moment) : 0;
    at("state").textContent = "up " + time(now.up_seconds);
    at("messages").textContent = count(rate("messages")) + "/s";
    at("rows").textContent = count(rate("rows")) + "/s";
    at("statements").textContent = count(rate("statements")) + "/s";
    at("sent").textContent = bytes(rate("sent_bytes")) + "/s";
    at("failed").textContent = count(now.failed) + " of " + count(now.statements);
    at("rejected").textContent = count(now.rejected) + " of " + count(now.messages + now.rejected);
    past.push(rate("statements"));
    if (past.length > 120) past.shift();
    const top = Math.max(1, ...past);
    const points = past.map((value, place) => (place * 5) + "," + (58 - 54 * value / top).toFixed(1));
    at("line").setAttribute("points", points.join(" "));
    at("top").textContent = "statements/s, last two minutes, up to " + count(top);
    fill("running", now.running.map((it) => [[time(it.seconds), "n"], [count(it.rows), "n"], [it.user], [it.text]]));
    fill("clients", now.clients.map((it) => [[it.user], [it.application], [it.peer], [time(it.seconds), "n"]]));
    fill("tables", now.tables.map((it) => [[it.name],
      [it.rows === undefined ? "" : it.rows.toLocaleString("en"), "n"],
      [it.bytes === undefined ? "" : bytes(it.bytes), "n"], [it.columns]]));
    before = { now, moment };
  };

  const watch = async () => {
    try {
      const answer = await fetch("status");
      if (!answer.ok) throw new Error(answer.statusText);
      show(await answer.json());
    } catch (error) {
      at("state").textContent = "no response: " + error.message;
    }
    setTimeout(watch, 1000);
  };

  const shownMax = 500;

  // Shows rows as a table; live rows are added at the top.
  const grid = (isLive) => {
    const table = at("answer");
    table.replaceChildren();
    let names = null, all = 0;
    const add = (row) => {
      all += 1;
      if (all > shownMax && !isLive) return;
      if (!names) {
        names = Object.keys(row);
        const head = make("tr");
        head.append(...names.map((name) => make("th", name)));
        const top = make("thead");
        top.append(head);
        table.append(top, make("tbody"));
      }
      const cells = make("tr");
      cells.append(...names.map((name) => {
        const value = row[name];
        const text = value === null ? "" : typeof value === "object" ? JSON.stringify(value) : String(value);
        return make("td", text, typeof value === "number" ? "n" : "");
      }));
      const body = table.tBodies[0];
      if (!isLive) { body.append(cells); return; }
      body.prepend(cells);
      if (body.rows.length > shownMax) body.lastChild.remove();
    };
    return { add, count: () => all };
  };

  // Passes the parts of a response to `take` as they arrive; `end` terminates each.
  const parts = async (answer, end, take) => {
    if (!answer.ok) {
      const wrong = await answer.json();
      throw new Error(wrong.error + (wrong.hint ? " (" + wrong.hint + ")" : ""));
    }
    const reader = answer.body.getReader(), decoder = new TextDecoder();
    let rest = "";
    for (;;) {
      const { done, value } = await reader.read();
      rest += done ? decoder.decode() : decoder.decode(value, { stream: true });
      const whole = rest.split(end);
      rest = whole.pop();
      whole.filter((part) => part).forEach(take);
      if (done) return;
    }
  };

  const rows = (count) => count.toLocaleString("en") + (count === 1 ? " row" : " rows");
  let asking = null;
  const run = async (button, work) => {
    if (asking) { asking.abort(); return; }
    const said = at("said"), label = button.textContent;
    said.textContent = "…";
    asking = new AbortController();
    button.textContent = "Stop";
    try {
      said.textContent = await work(said, asking.signal);
    } catch (error) {
      said.textContent = error.name === "AbortError" ? "stopped" : error.message;
    }
    asking = null;
    button.textContent = label;
  };

  const ask = () => run(at("ask"), async (said, signal) => {
    const answer = grid(false), start = performance.now();
    const reply = await fetch("query", {
      method: "POST", body: at("sql").value, signal,
      headers: { "Accept": "application/x-ndjson", "Content-Type": "text/plain" },
    });
    await parts(reply, "\n", (line) => answer.add(JSON.parse(line)));
    const count = answer.count();
    const more = count > shownMax ? ", the first " + shownMax + " shown" : "";
    return rows(count) + more + ", " + time((performance.now() - start) / 1000);
  });

  const signs = { snapshot: "=", insert: "+", delete: "-" };
  const subscribe = () => run(at("subscribe"), async (said, signal) => {
    const answer = grid(true);
    const reply = await fetch("subscribe?snapshot=true&sql=" + encodeURIComponent(at("sql").value), { signal });
    await parts(reply, "\n\n", (event) => {
      const fields = Object.fromEntries(event.split("\n").map((line) => {
        const colon = line.indexOf(": ");
        return [line.slice(0, colon), line.slice(colon + 2)];
      }));
      const data = JSON.parse(fields.data);
      if (fields.event === "error") throw new Error(data.error);
      const change = signs[fields.event];
      if (change) answer.add({ mark: Number(fields.id), change, ...data });
      said.textContent = rows(answer.count()) + " up to mark " + fields.id;
    });
    return rows(answer.count()) + ", complete";
  });

  at("ask").addEventListener("click", ask);
  at("subscribe").addEventListener("click", subscribe);
  at("sql").addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) ask();
  });
  watch();
})();
