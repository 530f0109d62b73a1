// The table of files can be searched.
(() => {
  const find = document.getElementById("find");
  const rows = [...document.querySelectorAll("#files tbody tr")];
  const texts = rows.map((row) => (row.textContent + " " + row.lastChild.title).toLowerCase());
  find?.addEventListener("input", () => {
    const words = find.value.toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    rows.forEach((row, at) => {
      row.hidden = !words.every((word) => texts[at].includes(word));
      count += !row.hidden;
    });
    const noun = count === 1 ? "file" : "files";
    document.getElementById("found").textContent = `${count.toLocaleString("en")} ${noun}`;
  });
})();
