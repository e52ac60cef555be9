// The patterns of the document: portable among JavaScript, Python and Go.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { Ajv2020 } from 'ajv/dist/2020.js';
import * as fc from 'fast-check';
import { z } from 'zod';
import { fullDocument } from '../../src/document/openapi.ts';
import { repoCredentials } from '../../src/orgs/projects.ts';
import { text } from '../../src/route/text.ts';
import { branchName } from '../../src/sandboxes/fields.ts';

interface Example {
  schema: object;
  example?: unknown;
}

function patternsIn(part: unknown): string[] {
  if (typeof part !== 'object' || part === null) return [];
  return Object.entries(part).flatMap(([key, value]) =>
    key === 'pattern' && typeof value === 'string' ? [value] : patternsIn(value),
  );
}

const PATTERNS = [...new Set(patternsIn(fullDocument()))];

/** Escapes with the same meaning in JavaScript, Python and Go: `\xHH` and escaped punctuation. */
const PORTABLE_ESCAPE = /\\(?:x[0-9a-f]{2}|[.*+?^${}()|[\]\\/-])/g;

/** Syntax that an engine lacks or interprets differently; empty for a portable pattern. */
function unportable(pattern: string): string[] {
  const rest = pattern.replaceAll(PORTABLE_ESCAPE, 'x');
  return [
    ...(rest.match(/\\./gs) ?? []),
    ...(rest.match(/\(\?(?!:).?/gs) ?? []),
    ...(rest.match(/[^\x20-\x7e]/g) ?? []),
    // Posix classes, nested sets and set operations.
    ...(rest.match(/\[\^?[^\]]*(?:\[|&&|--)[^\]]*\]/g) ?? []),
    // RE2 has no possessive quantifiers and limits repetition to 1,000.
    ...(rest.match(/[*+?}][+]/g) ?? []),
    ...(rest.match(/\{[0-9]*,?[0-9]{4,}\}/g) ?? []),
  ];
}

test('syntax beyond the common part of JavaScript, Python and Go is reported', () => {
  for (const pattern of [
    String.raw`^[^\0\p{Cs}]*$`,
    String.raw`^\d+$`,
    String.raw`^[\s]$`,
    String.raw`^\u0000$`,
    '(?!x)',
    '(?<=x)',
    '(?<name>x)',
    '(?i)x',
    String.raw`(x)\1`,
    '[[:alpha:]]',
    '[a-z--b]',
    'x++',
    'x{1,1001}',
    '\u00a0',
  ])
    assert.notDeepEqual(unportable(pattern), [], pattern);
});

for (const pattern of PATTERNS) {
  test(`the pattern ${pattern.slice(0, 60)} compiles in JavaScript without flags, Python and Go`, () => {
    assert.deepEqual(unportable(pattern), []);
    for (const flags of ['', 'u']) assert.doesNotThrow(() => new RegExp(pattern, flags), flags);
  });
}

const PYTHON = `
import json, re, sys, warnings
warnings.simplefilter('error')
patterns, texts = json.load(sys.stdin)
print(json.dumps([[re.fullmatch(one, text) is not None for text in texts] for one in patterns]))
`;

const characters = fc.constantFrom(
  ...Array.from({ length: 0xa2 }, (_, code) => String.fromCodePoint(code)),
  ...['\u0085', '\u1680', '\u2028', '\ufeff', '\uffff', '\u0663', 'é', '名', '💡', '\u{10ffff}'],
  ...['main', 'a@b', 'x.lock', '2026-01-31T08:15:30.250Z', 'ssh-ed25519 '],
);

test('every pattern has the same language in JavaScript with and without flags, and in Python', () => {
  const texts = fc.sample(fc.string({ unit: characters, maxLength: 5 }), 2_000);
  const { stdout, stderr, status } = spawnSync('python3', ['-c', PYTHON], {
    input: JSON.stringify([PATTERNS, texts]),
    encoding: 'utf8',
    maxBuffer: 64 * 1024 * 1024,
  });
  assert.equal(status, 0, stderr);
  for (const [index, matches] of (JSON.parse(stdout) as boolean[][]).entries()) {
    const pattern = PATTERNS[index] ?? '';
    for (const flags of ['', 'u']) {
      const found = texts.map((one) => new RegExp(pattern, flags).test(one));
      for (const [at, one] of texts.entries())
        assert.equal(found[at], matches[at], `${pattern} ${flags} ${JSON.stringify(one)}`);
    }
  }
});

const patternOf = (schema: z.ZodType): RegExp => {
  const { pattern } = z.toJSONSchema(schema, { io: 'input' });
  assert.ok(pattern !== undefined);
  return new RegExp(pattern);
};

const { username, token } = repoCredentials.shape;
for (const [name, schema] of [
  ['text', text(0, 100)],
  ['user name', username.unwrap()],
  ['token', token],
] as const) {
  test(`the pattern of a ${name} accepts exactly the well-formed strings that the service accepts`, () => {
    fc.assert(
      fc.property(fc.string({ unit: characters, minLength: 1, maxLength: 5 }), (one) => {
        assert.equal(patternOf(schema).test(one), schema.safeParse(one).success, JSON.stringify(one));
      }),
    );
  });
}

test('the pattern of a branch accepts every branch that the service accepts', () => {
  fc.assert(
    fc.property(fc.string({ unit: characters, minLength: 1, maxLength: 5 }), (one) => {
      if (branchName.safeParse(one).success) assert.ok(patternOf(branchName).test(one), JSON.stringify(one));
    }),
  );
});

test('text with lone surrogates stays rejected', () => {
  for (const one of ['\ud800', 'a\udc00b', '\udc00\ud800'])
    assert.deepEqual([text(0, 9).safeParse(one).success, branchName.safeParse(one).success], [false, false]);
});

test('the examples of the document pass a validator that compiles patterns without the unicode flag', () => {
  const { components, paths } = fullDocument();
  const validator = new Ajv2020({ strict: false, unicodeRegExp: false, validateFormats: false });
  validator.addSchema({ $id: 'document', components });
  let checked = 0;
  for (const [path, methods] of Object.entries(paths)) {
    for (const [method, operation] of Object.entries(methods)) {
      const { requestBody } = operation as { requestBody?: { content: Record<string, Example> } };
      for (const { schema, example } of Object.values(requestBody?.content ?? {})) {
        if (example === undefined) continue;
        const local = JSON.parse(JSON.stringify(schema).replaceAll('"#/components', '"document#/components')) as object;
        assert.ok(validator.validate(local, example), `${method} ${path}: ${validator.errorsText()}`);
        checked += 1;
      }
    }
  }
  assert.ok(checked >= 8, String(checked));
});
