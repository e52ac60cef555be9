const COLUMNS = 100;

/** Wraps each paragraph at 100 columns. An empty line separates paragraphs. */
export function wrapParagraphs(text: string): string {
  return text
    .split('\n\n')
    .map((paragraph) => wrap(paragraph.split(/\s+/)))
    .join('\n\n');
}

function wrap(words: readonly string[]): string {
  const lines: string[] = [];
  for (const word of words) {
    const line = lines.at(-1);
    if (line !== undefined && line.length + 1 + word.length <= COLUMNS) lines[lines.length - 1] = `${line} ${word}`;
    else lines.push(word);
  }
  return lines.join('\n');
}
