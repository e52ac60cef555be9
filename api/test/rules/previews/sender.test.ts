// Which pages may use a visitor's access to a preview: every combination of headers that browsers
// send, for previews of one site, on a public suffix, and without fetch metadata.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { judgeSender, type SenderVerdict } from '../../../src/rules/previews/sender.ts';

const PREVIEW_URL = 'https://previews.example.test';
const OWN = 'https://3000-aaaaaaaaaaaaaaaaaaaaaaaa.previews.example.test';
const SIBLING = 'https://3000-bbbbbbbbbbbbbbbbbbbbbbbb.previews.example.test';
const OTHER_PORT = 'https://8000-aaaaaaaaaaaaaaaaaaaaaaaa.previews.example.test';
const SERVICE = 'https://berth.example.test';

interface Asked {
  method?: string;
  webSocket?: boolean;
  token?: boolean;
  origin?: string;
  site?: string;
  mode?: string;
  dest?: string;
  referer?: string;
}

const judge = ({ method = 'GET', webSocket = false, token = false, site, mode, dest, ...rest }: Asked): SenderVerdict =>
  judgeSender(PREVIEW_URL, {
    method,
    isWebSocket: webSocket,
    hasToken: token,
    ownOrigin: OWN,
    headers: { ...rest, 'sec-fetch-site': site, 'sec-fetch-mode': mode, 'sec-fetch-dest': dest },
  });
const page = { mode: 'navigate', dest: 'document' } as const;
const frame = { mode: 'navigate', dest: 'iframe' } as const;

test('requests of the preview’s own pages and typed addresses are accepted', () => {
  for (const asked of [
    { site: 'same-origin', mode: 'cors', dest: 'empty' },
    { site: 'same-origin', mode: 'no-cors', dest: 'image' },
    { site: 'same-origin', ...frame },
    { site: 'same-origin', method: 'POST', origin: OWN },
    // A form of a page with the referrer policy `no-referrer`.
    { site: 'same-origin', method: 'POST', origin: 'null', ...page },
    { site: 'none', ...page },
    { webSocket: true, origin: OWN },
    { webSocket: true, origin: OWN, site: 'same-origin', mode: 'websocket', dest: 'empty' },
  ] satisfies Asked[])
    assert.equal(judge(asked), 'accepted', JSON.stringify(asked));
});

test('a top-level navigation is accepted from other sites, and from siblings with a token only', () => {
  for (const [asked, verdict] of [
    [{ site: 'cross-site' }, 'accepted'],
    [{ site: 'cross-site', referer: 'https://mail.example.org/' }, 'accepted'],
    [{ site: 'same-site', referer: `${SERVICE}/` }, 'accepted'],
    [{ site: 'same-site', referer: `${SIBLING}/` }, 'rejected'],
    [{ site: 'same-site', referer: `${OTHER_PORT}/` }, 'rejected'],
    [{ site: 'same-site', referer: `${PREVIEW_URL}/` }, 'rejected'],
    // A sibling can hide, and cannot name another page.
    [{ site: 'same-site' }, 'rejected'],
    [{ site: 'same-site', referer: 'not a URL' }, 'rejected'],
    // The preview host is a public suffix.
    [{ site: 'cross-site', referer: `${SIBLING}/` }, 'rejected'],
    [{ site: 'same-site', token: true }, 'accepted'],
    [{ site: 'same-site', token: true, referer: `${SIBLING}/` }, 'accepted'],
    [{ site: 'cross-site', token: true, referer: `${SIBLING}/` }, 'accepted'],
  ] as [Asked, SenderVerdict][])
    assert.equal(judge({ ...page, ...asked }), verdict, JSON.stringify(asked));
});

test('frames of other origins depend on the link', () => {
  for (const site of ['same-site', 'cross-site']) {
    for (const dest of ['iframe', 'frame', 'embed', 'object', 'fencedframe', 'new-kind']) {
      for (const token of [false, true])
        assert.equal(judge({ site, mode: 'navigate', dest, token }), 'if_embeddable', `${site} ${dest}`);
    }
  }
});

test('other requests of other origins are rejected, with or without a token', () => {
  for (const token of [false, true]) {
    for (const asked of [
      ...['same-site', 'cross-site'].flatMap((site) => [
        { site, mode: 'no-cors', dest: 'image' },
        { site, mode: 'no-cors', dest: 'script' },
        { site, mode: 'cors', dest: 'empty', origin: SIBLING },
        { site, ...page, method: 'POST', origin: SIBLING },
        { site, ...page, method: 'POST' },
        { site, ...page, method: 'POST', origin: 'null' },
        { site, mode: 'websocket', dest: 'empty', webSocket: true },
      ]),
      { site: 'new-kind', ...page, method: 'PUT' },
      // Several values.
      { site: 'same-origin, cross-site', mode: 'cors' },
    ] satisfies Asked[])
      assert.equal(judge({ ...asked, token }), 'rejected', JSON.stringify(asked));
  }
});

test('a WebSocket or unsafe method needs no Origin, or the preview’s own', () => {
  for (const method of ['GET', 'HEAD', 'OPTIONS', 'POST', 'PUT', 'PATCH', 'DELETE', 'PROPFIND']) {
    for (const webSocket of method === 'GET' ? [false, true] : [false]) {
      assert.equal(judge({ method, webSocket }), 'accepted');
      assert.equal(judge({ method, webSocket, origin: OWN }), 'accepted');
      for (const origin of [
        SIBLING,
        OTHER_PORT,
        SERVICE,
        PREVIEW_URL,
        'null',
        '',
        OWN.replace('https:', 'http:'),
        `${OWN}:8443`,
        `${OWN}.evil.test`,
        `${OWN}/`,
        OWN.toUpperCase(),
        `${OWN}, ${SIBLING}`,
      ]) {
        for (const token of [false, true])
          assert.equal(judge({ method, webSocket, origin, token }), 'rejected', `${method} ${origin}`);
      }
    }
  }
});

test('without fetch metadata a request whose Referer is a sibling is rejected', () => {
  for (const method of ['GET', 'POST']) {
    assert.equal(judge({ method }), 'accepted');
    assert.equal(judge({ method, referer: `${OWN}/page` }), 'accepted');
    assert.equal(judge({ method, referer: 'https://mail.example.org/' }), 'accepted');
    assert.equal(judge({ method, referer: `${SIBLING}/` }), 'rejected');
    assert.equal(judge({ method, referer: `${SIBLING}/`, token: true }), 'accepted');
    assert.equal(judge({ method, referer: `${SIBLING}/`, origin: OWN }), 'accepted');
  }
});
