// Values in a template never escape their place.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { html, type Html } from '../../src/rules/html.ts';

/** Text with frequent HTML metacharacters. */
const text = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.string({
    unit: fc.constantFrom(
      '<',
      '>',
      '"',
      "'",
      '&',
      '=',
      '/',
      '`',
      '\0',
      '\n',
      'script',
      '-->',
      '&lt;',
      '&amp',
      '${',
      'é',
      '𝕏',
    ),
  }),
);

/** Decodes the five escapes. */
function unescaped(markup: string): string {
  const characters: Record<string, string> = { amp: '&', lt: '<', gt: '>', quot: '"', '#39': "'" };
  return markup.replaceAll(/&(amp|lt|gt|quot|#39);/g, (_whole, name: string) => characters[name] ?? '');
}

test('text is escaped and reads back unchanged', () => {
  fc.assert(
    fc.property(text, (value) => {
      const markup = html`${value}`.toString();
      assert.doesNotMatch(markup, /[<>"']/);
      assert.doesNotMatch(markup, /&(?!(?:amp|lt|gt|quot|#39);)/);
      assert.equal(unescaped(markup), value);
    }),
  );
});

test('a template keeps exactly its own tags and quotes, whatever its values and nesting', () => {
  fc.assert(
    fc.property(text, text, fc.array(text, { maxLength: 4 }), (attribute, between, items) => {
      const list: Html[] = items.map((item) => html`<li>${item}</li>`);
      // oxfmt-ignore
      const markup = html`<ul title="${attribute}" class='${attribute}'>${between}${list}</ul>`.toString();
      const frame = /^<ul title="([^"<>]*)" class='([^'<>]*)'>([^<>]*)((?:<li>[^<>]*<\/li>)*)<\/ul>$/.exec(markup);
      assert.ok(frame, markup);
      assert.deepEqual(
        frame.slice(1, 4).map((part) => unescaped(part ?? '')),
        [attribute, attribute, between],
      );
      assert.deepEqual(
        [...(frame[4] ?? '').matchAll(/<li>([^<]*)<\/li>/g)].map(([, item]) => unescaped(item ?? '')),
        items,
      );
    }),
  );
});

test('nested templates are not escaped twice, empty values vanish, numbers are written', () => {
  const inner = html`<b>${'a < b'}</b>`;
  assert.equal(
    html`<p>${inner}${null}${undefined}${false}${7}${[inner, ' & ']}</p>`.toString(),
    '<p><b>a &lt; b</b>7<b>a &lt; b</b> &amp; </p>',
  );
});

test('an object with its own toString is refused instead of taken for a template', () => {
  assert.throws(() => html`${{ toString: () => '<b>' } as unknown as string}`);
});

test('an attribute without quotes is refused', () => {
  assert.throws(() => html`<a href=${'x onclick=y'}></a>`, /must stand in quotes/);
});
