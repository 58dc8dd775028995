// The page's drawings.

const DRAWINGS = {
  plus: ["M12 5v14M5 12h14"],
  send: ["M12 19V5M6 11l6-6 6 6"],
  stop: ["M7 7h10v10H7z"],
  copy: ["M9 9h10v10a1 1 0 0 1-1 1H10a1 1 0 0 1-1-1z", "M15 9V5a1 1 0 0 0-1-1H5a1 1 0 0 0-1 1v9a1 1 0 0 0 1 1h4"],
  check: ["M5 12.5l4.5 4.5L19 7.5"],
  again: ["M4 12a8 8 0 0 1 13.7-5.6L20 8.5", "M20 4v4.5h-4.5", "M20 12a8 8 0 0 1-13.7 5.6L4 15.5", "M4 20v-4.5h4.5"],
  bin: ["M5 7h14M10 7V4.5h4V7M7 7l.8 12.5h8.4L17 7M10.3 11v5M13.7 11v5"],
  more: ["M6 12h.1M12 12h.1M18 12h.1"],
  search: ["M10.5 4.5a6 6 0 1 0 0 12 6 6 0 0 0 0-12zM15 15l5 5"],
  download: ["M12 4v11M7 10.5l5 5 5-5M5 19.5h14"],
  upload: ["M12 15.5v-11M7 9l5-5 5 5M5 19.5h14"],
  person: ["M12 4.5a3.5 3.5 0 1 0 0 7 3.5 3.5 0 0 0 0-7z", "M5 20c.5-4 3-6 7-6s6.5 2 7 6"],
  leave: ["M14 5H6v14h8M11 12h9M17 8.5l3.5 3.5-3.5 3.5"],
  goodAnswer: ["M8 11l3.5-7c1.6 0 2.5 1 2.5 2.5V10h4.5c1 0 1.7.9 1.5 1.9l-1.2 6c-.2.7-.8 1.1-1.5 1.1H8z", "M4.5 11H8v8H4.5z"],
  badAnswer: ["M8 13l3.5 7c1.6 0 2.5-1 2.5-2.5V14h4.5c1 0 1.7-.9 1.5-1.9l-1.2-6c-.2-.7-.8-1.1-1.5-1.1H8z", "M4.5 5H8v8H4.5z"],
  menu: ["M4 7h16M4 12h16M4 17h16"],
  sun: ["M12 8.5a3.5 3.5 0 1 0 0 7 3.5 3.5 0 0 0 0-7z", "M12 3v1.5M12 19.5V21M3 12h1.5M19.5 12H21M5.6 5.6l1.1 1.1M17.3 17.3l1.1 1.1M18.4 5.6l-1.1 1.1M6.7 17.3l-1.1 1.1"],
  moon: ["M20 14.5A8.5 8.5 0 0 1 9.5 4a8.5 8.5 0 1 0 10.5 10.5z"],
  book: ["M12 6.5C10 5 7 4.8 4 5.8v12.4c3-1 6-.8 8 .7 2-1.5 5-1.7 8-.7V5.8c-3-1-6-.8-8 .7zM12 6.5v12.4"],
  picture: ["M5 5h14a1 1 0 0 1 1 1v12a1 1 0 0 1-1 1H5a1 1 0 0 1-1-1V6a1 1 0 0 1 1-1z", "M4.5 16.5l4.5-4.5 4 4 2.5-2.5 4 4", "M15 9h.1"],
  talk: ["M5 5h14a1 1 0 0 1 1 1v9a1 1 0 0 1-1 1h-7l-4.5 3.5V16H5a1 1 0 0 1-1-1V6a1 1 0 0 1 1-1z"],
  pencil: ["M5 19l1-4L16.5 4.5l3 3L9 18zM14 7l3 3"],
  close: ["M6 6l12 12M18 6L6 18"],
  down: ["M7 10l5 5 5-5"],
  alert: ["M12 4L3 19.5h18zM12 10v4.5M12 17v.1"],
  why: ["M12 4a8 8 0 1 0 0 16 8 8 0 0 0 0-16z", "M12 11.5v4.5M12 8v.1"],
};

/** Return one of the page's drawings; it says nothing to a screen reader. */
export function icon(name) {
  const space = "http://www.w3.org/2000/svg";
  const made = document.createElementNS(space, "svg");
  made.setAttribute("viewBox", "0 0 24 24");
  made.setAttribute("class", "icon");
  made.setAttribute("aria-hidden", "true");
  for (const drawing of DRAWINGS[name]) {
    const path = document.createElementNS(space, "path");
    path.setAttribute("d", drawing);
    made.append(path);
  }
  return made;
}
