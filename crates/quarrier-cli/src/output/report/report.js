// The page is complete without this: it adds the values under the pointer.
(() => {
  const tip = document.body.appendChild(document.createElement("div"));
  tip.id = "tip";
  const number = (value, end) => value.toLocaleString("en", {
    maximumFractionDigits: Math.max(0, 3 - Math.floor(Math.log10(end || 1))) * (end < 1e6),
  });
  let cursors = [];
  const clear = () => {
    cursors.forEach((cursor) => cursor.remove());
    cursors = [];
    tip.style.display = "none";
  };
  const show = (canvas, event) => {
    clear();
    const box = canvas.getBoundingClientRect();
    const share = Math.min(Math.max((event.clientX - box.left) / box.width, 0), 0.999999);
    for (const other of canvas.closest(".sync")?.querySelectorAll(".canvas") ?? [canvas]) {
      const cursor = other.appendChild(document.createElement("i"));
      cursor.className = "cursor";
      cursor.style.left = 100 * share + "%";
      cursors.push(cursor);
    }
    const data = canvas.dataset;
    if (!data.values) return;
    const end = Number(data.end);
    const bins = Number(data.bins);
    const bin = Math.floor(share * bins);
    const from = number(end * bin / bins, end);
    const to = number(Math.min(end * (bin + 1) / bins, end), end);
    const names = data.names.split(";");
    const lines = data.values.split(";").map((values, at) =>
      `${names[at]} ${Number(values.split(",")[bin]).toLocaleString("en")} ${data.valueUnit}`);
    if (data.title) lines.unshift(data.title);
    tip.textContent = [...lines, `${from} – ${to} ${data.unit}`].join("\n");
    tip.style.display = "block";
    const left = event.clientX + 14;
    const fits = left + tip.offsetWidth < document.documentElement.clientWidth;
    tip.style.left = Math.max(4, fits ? left : event.clientX - 14 - tip.offsetWidth) + "px";
    tip.style.top = event.clientY + 16 + "px";
  };
  for (const canvas of document.querySelectorAll(".canvas")) {
    canvas.addEventListener("pointermove", (event) => show(canvas, event));
    canvas.addEventListener("pointerdown", (event) => show(canvas, event));
    canvas.addEventListener("pointerleave", clear);
  }
  const unfold = () => {
    const target = document.getElementById(location.hash.slice(1));
    if (target instanceof HTMLDetailsElement) target.open = true;
  };
  addEventListener("hashchange", unfold);
  unfold();
})();
