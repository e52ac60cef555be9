// HTML that cannot be broken out of: whatever is put into a template is escaped, unless it came out
// of one itself. Knows no page.

class Markup {
  readonly #text: string;

  constructor(text: string) {
    this.#text = text;
  }

  toString(): string {
    return this.#text;
  }
}

/** Markup that is safe to send. {@link html} alone makes it. */
export type Html = Markup;

/**
 * What a template takes: text is escaped, nothing (null, undefined, false) is left out, a list is
 * written one after the other.
 */
export type HtmlValue = Html | string | number | null | undefined | false | readonly HtmlValue[];

/**
 * Markup of a template literal. Values may stand between tags and inside attributes' quotes, and
 * nowhere else: throws when one stands right after `=`, where escaping does not help. Not for
 * scripts and styles, of which the pages have none.
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
