/** A module as a browser needs it: without the comments that are for its readers. */

/**
 * Leaves out the lines that are nothing but comment. It knows no more of the language, so it is for
 * modules whose text in backquotes keeps to one line, as the page's do.
 *
 * @param source The module.
 * @returns The same, shorter.
 */
export function withoutComments(source: string): string {
  const kept: string[] = [];
  let inside = false;
  for (const line of source.split("\n")) {
    const text = line.trim();
    if (!inside && text.startsWith("/*")) {
      const end = text.indexOf("*/");
      // A type in front of a value: the line goes on.
      if (end >= 0 && end < text.length - 2) kept.push(line);
      else inside = end < 0;
    } else if (inside) inside = !text.endsWith("*/");
    else if (text !== "" && !text.startsWith("//")) kept.push(line);
  }
  return kept.join("\n") + "\n";
}
