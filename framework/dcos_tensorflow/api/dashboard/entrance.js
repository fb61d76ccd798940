// The page of a window of many (`dashboard serve`) for a browser that is not logged in: it says the
// operator's token once, and gets a cookie that no script reads.
import { Connection, Unauthorized } from "./connection.js";
import { door } from "./door.js";
import { render } from "./html.js";

/** The window's own address: this page stands in for any of its pages. */
const WINDOW = document.baseURI.split(/[?#]/)[0].replace(/(services\/[^/]+|queue)\/$/, "");

/** @param {string} problem */
function show(problem) {
  const given = { title: "dcos-tensorflow", label: "The operator's token", note: "This browser stays logged in." };
  render(door({ ...given, problem, enter }), document.getElementById("page"));
}

/** @param {string} token */
async function enter(token) {
  const connection = new Connection();
  connection.token = token;
  try {
    await connection.order(`${WINDOW}login`);
    location.reload();
  } catch (error) {
    show(error instanceof Unauthorized ? "This is not the token." : error instanceof TypeError ? "The window does not answer." : error.message);
  }
}

show("");
