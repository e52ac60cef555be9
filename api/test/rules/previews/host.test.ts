// Preview hosts: from an origin to its sandbox and port and back, and invalid hosts.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  parsePreviewHost,
  previewOrigin,
  previewUrlFault,
  readPreviewPlace,
  type PreviewPlace,
} from '../../../src/rules/previews/host.ts';

const URLS = [
  'http://localhost:4800',
  'https://previews.example.com',
  'http://previews.example.com:8080',
  'https://p',
] as const;
const ID = 'abcdefghijklmnopqrstuv27';
const PLACE: PreviewPlace = { sandboxId: `sbx_${ID}`, port: 3_000 };

const place = fc
  .tuple(fc.stringMatching(/^[a-z2-7]{24}$/), fc.integer({ min: 1, max: 65_535 }))
  .map(([id, port]): PreviewPlace => ({ sandboxId: `sbx_${id}`, port }));
const url = fc.constantFrom(...URLS);

test("every preview's own origin decodes to its sandbox and port, in any case and with any port", () => {
  const cases = fc.constantFrom(
    (host: string) => host,
    (host: string) => host.toUpperCase(),
    (host: string) => `${host.replace(/:\d+$/, '')}:65535`,
    (host: string) => host.replace(/:\d+$/, ''),
  );
  fc.assert(
    fc.property(url, place, cases, (previewUrl, there, written) => {
      const origin = new URL(previewOrigin(previewUrl, there));
      assert.equal(origin.origin, previewOrigin(previewUrl, there));
      assert.equal(origin.protocol, new URL(previewUrl).protocol);
      assert.deepEqual(parsePreviewHost(previewUrl, written(origin.host)), there);
      assert.deepEqual(readPreviewPlace(there.sandboxId, String(there.port)), there);
    }),
  );
  fc.assert(
    fc.property(url, place, place, (previewUrl, one, other) => {
      const same = one.sandboxId === other.sandboxId && one.port === other.port;
      assert.equal(previewOrigin(previewUrl, one) === previewOrigin(previewUrl, other), same);
    }),
  );
});

test("a preview's host is valid for DNS and browsers", () => {
  assert.equal(previewOrigin('https://previews.example.com', PLACE), `https://3000-${ID}.previews.example.com`);
  assert.equal(previewOrigin('http://localhost:4800', { ...PLACE, port: 65_535 }), `http://65535-${ID}.localhost:4800`);
  assert.equal(
    previewUrlFault(
      `https://${'a'.repeat(60)}.${'b'.repeat(60)}.${'c'.repeat(60)}.${'d'.repeat(39)}`,
      'https://x.test',
    ),
    null,
  );
});

test('an invalid name below the preview host is malformed, never the service', () => {
  const host = 'localhost';
  for (const wrong of [
    `0-${ID}`,
    `03000-${ID}`,
    `65536-${ID}`,
    `99999-${ID}`,
    `-${ID}`,
    `3000-${ID.slice(1)}`,
    `3000-${ID}a`,
    `3000-${ID.slice(1)}1`,
    `3000-sbx_${ID}`,
    `3000--${ID}`,
    `3000${ID}`,
    `3000-${ID}.x`,
    `x.3000-${ID}`,
    '*',
    '',
    'www',
    `3000-${ID.slice(1)}é`,
    `+3000-${ID}`,
    `3e3-${ID}`,
  ])
    assert.equal(parsePreviewHost(URLS[0], `${wrong}.${host}`), 'malformed', wrong);

  const right = `3000-${ID}.${host}`;
  assert.deepEqual(parsePreviewHost(URLS[0], right), PLACE);
  for (const tricked of [
    `${right}.`,
    `${right}..:4800`,
    `${right}:`,
    `${right}:0`,
    `${right}:080`,
    `${right}:65536`,
    `${right}:80:80`,
    `${right}:x`,
    `${right} `,
    `${right}/x`,
    `${right}?x`,
    `${right}#x`,
    `${right}\\x`,
    `${right},x`,
    `${right}\t`,
    `me@${right}`,
    `me:x@${right}:80`,
    `a@b@${right}`,
  ])
    assert.equal(parsePreviewHost(URLS[0], tricked), 'malformed', tricked);
});

test('any prefix of the preview host is that preview or malformed; other hosts are no preview', () => {
  fc.assert(
    fc.property(url, fc.string(), (previewUrl, before) => {
      const name = new URL(previewUrl).hostname;
      // Characters that end a host name would hide the rest.
      fc.pre(!/[\s:/\\?#,@]/.test(before));
      const parsed = parsePreviewHost(previewUrl, `${before}.${name}`);
      const isPlace = typeof parsed === 'object';
      assert.ok(isPlace || parsed === 'malformed');
      if (isPlace) {
        assert.equal(
          previewOrigin(previewUrl, parsed),
          new URL(`${new URL(previewUrl).protocol}//${before}.${new URL(previewUrl).host}`).origin,
        );
      }
    }),
  );
  fc.assert(
    fc.property(url, fc.domain(), (previewUrl, other) => {
      fc.pre(!other.endsWith('previews.example.com') && !other.endsWith('.p'));
      assert.equal(parsePreviewHost(previewUrl, other), 'not_a_preview');
    }),
  );
});

test("the service's host, addresses and similar names are no preview", () => {
  for (const host of [
    'localhost',
    'localhost:4800',
    'LOCALHOST',
    '127.0.0.1:4800',
    '[::1]:4800',
    'berth.example.com',
    '',
    `3000-${ID}localhost`,
    `3000-${ID}.localhost.example.com`,
    `3000-${ID}.localhost:80.example.com`.replace(':80', ''),
    'xlocalhost',
  ])
    assert.equal(parsePreviewHost(URLS[0], host), 'not_a_preview', host);

  assert.equal(parsePreviewHost(URLS[1], `3000-${ID}.localhost`), 'not_a_preview');
  // With a dedicated preview host, its bare name does not belong to the service either.
  for (const host of ['previews.example.com', 'previews.example.com:443', 'Previews.Example.com.'])
    assert.equal(parsePreviewHost(URLS[1], host), 'malformed', host);
});

test('a sandbox and port are read only from their exact texts', () => {
  assert.deepEqual(readPreviewPlace(PLACE.sandboxId, '3000'), PLACE);
  for (const [sandbox, port] of [
    ['', ''],
    [ID, '3000'],
    [`prj_${ID}`, '3000'],
    [`${PLACE.sandboxId}\n`, '3000'],
    [PLACE.sandboxId, ''],
    [PLACE.sandboxId, '0'],
    [PLACE.sandboxId, '65536'],
    [PLACE.sandboxId, ' 3000'],
    [PLACE.sandboxId, '3000-'],
    [PLACE.sandboxId.toUpperCase(), '3000'],
  ] as const)
    assert.equal(readPreviewPlace(sandbox, port), null, `${sandbox} ${port}`);
});

test('a preview URL must share no cookies with the public URL; only localhost may be both', () => {
  for (const [preview, own] of [
    ['http://localhost:4800', 'http://127.0.0.1:4800'],
    ['http://localhost:4800', 'http://localhost:4800'],
    ['http://localhost:4800', 'https://berth.example.com'],
    ['http://previews.localhost:4800', 'http://localhost:4800'],
    ['https://previews.example.com', 'https://berth.example.com'],
    ['https://example-previews.com', 'https://berth.example.com'],
    ['https://notexample.com', 'https://example.com'],
    ['https://p', 'http://10.0.0.5'],
  ] as const)
    assert.equal(previewUrlFault(preview, own), null, `${preview} ${own}`);

  for (const [preview, own, why] of [
    ['https://berth.example.com', 'https://berth.example.com', /another host than the public URL/],
    ['https://berth.example.com:8443', 'https://berth.example.com', /another host than the public URL/],
    ['https://example.com', 'https://berth.example.com', /a parent domain of the public URL's host/],
    ['https://previews.berth.example.com', 'https://berth.example.com', /a subdomain of the public URL's host/],
    ['http://localhost:4800', 'http://berth.localhost:4800', /a parent domain of the public URL's host/],
    ['http://127.0.0.1:4800', 'http://localhost:4800', /a host name, not an address/],
    ['http://[::1]:4800', 'http://localhost:4800', /a host name, not an address/],
    ['https://previews.example.com.', 'https://berth.example.com', /without a dot at its end/],
    [
      `https://${'a'.repeat(60)}.${'b'.repeat(60)}.${'c'.repeat(60)}.${'d'.repeat(40)}`,
      'https://x.test',
      /at most 222 characters/,
    ],
  ] as const)
    assert.match(previewUrlFault(preview, own) ?? '', why, `${preview} ${own}`);
});
