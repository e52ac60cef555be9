// HTML templates safe from injection: every interpolated value is escaped unless it is {@link Html}
// itself. Knows no page.

class Markup {
  readonly #text: string;

  constructor(text: string) {
    this.#text = text;
  }

  toString(): string {
    return this.#text;
  }
}

/** Markup that is safe to send. Only {@link html} makes it. */
export type Html = Markup;

/**
 * Values of a template: text is escaped; null, undefined and false are omitted; lists are
 * concatenated.
 */
type HtmlValue = Html | string | number | null | undefined | false | readonly HtmlValue[];

/**
 * Markup of a template literal. Values may appear between tags and inside quoted attributes only;
 * throws for a value right after `=`, where escaping does not protect. Not for scripts and styles,
 * which the pages do not contain inline.
 */
export function html(parts: TemplateStringsArray, ...values: readonly HtmlValue[]): Html {
  let text = parts[0] ?? '';
  for (const [index, value] of values.entries()) {
    if (parts[index]?.endsWith('=') === true) throw new Error('the value of an attribute must stand in quotes');
    text += written(value) + (parts[index + 1] ?? '');
  }
  return new Markup(text);
}

const ESCAPES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

function written(value: HtmlValue): string {
  if (value === null || value === undefined || value === false) return '';
  if (value instanceof Markup) return value.toString();
  if (typeof value === 'object') return value.map(written).join('');
  return String(value).replaceAll(/[&<>"']/g, (character) => ESCAPES[character] ?? '');
}
