// @ts-check
/** The token: out of the address, and then only in memory. */

/// <reference lib="dom" />

/**
 * Takes the token out of the address's fragment, which is never sent, and out of sight.
 *
 * @returns {string | null}
 */
export function takeToken() {
  const token = tokenIn(location.hash);
  if (token !== null) history.replaceState(null, "", location.pathname + location.search);
  return token;
}

/**
 * @param {string} fragment `#token=...`
 * @returns {string | null}
 */
export function tokenIn(fragment) {
  const token = new URLSearchParams(fragment.replace(/^#/, "")).get("token");
  return token === "" ? null : token;
}
