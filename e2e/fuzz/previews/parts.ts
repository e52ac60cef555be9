// Parts of preview requests: paths, queries, headers, bodies and credentials, each with its
// expected form at the app.
import { createHash } from 'node:crypto';
import type { ErrorCode } from '@berth/contract/route/errors.ts';
import type { Random } from '../../world/random.ts';
import { randomBytes } from '../core/odd-values.ts';
import { APP_ORDER_HEADER, type AppBehavior } from './app.ts';
import { HOP_MARKER } from './client.ts';
import type { PreviewEndpoint, PreviewEndpoints } from '../core/preview-request.ts';

const SEGMENTS = [
  'a',
  'index.html',
  '.',
  '..',
  '%2e%2e',
  '%2f',
  '%00',
  '%',
  '%zz',
  '%ff',
  '',
  ';x=1',
  '\\',
  '"',
  '<b>',
  '{}',
  '^',
  '`',
  '|',
  "'",
  '~',
  '*',
  '#f',
  '@',
  ':80',
  '\x80',
  '\xff\xfe',
  'é',
  'health',
  'v1',
  'me',
  'sign-in',
  'preview',
  '.well-known',
  '__proto__',
  'constructor',
  'a?b',
  'http:',
  '[::1]',
] as const;
const PAIRS = [
  'a',
  '',
  'a=b',
  '=',
  'token',
  'token=',
  'token=mine',
  'Token=x',
  'a=%00',
  'x=?',
  '%ff=%',
  'é=\xe9',
  'a=b=c',
  '+',
  'path=/../..',
  'token%=x',
  'a=#b',
  '%',
] as const;
/** Targets that any HTTP parser accepts. */
const PLAIN_TARGET = /^[\w\-.~%!$&'()*+,;=:@/?]*$/;
const STATUSES = [
  '200',
  '200',
  '200',
  '201',
  '204',
  '206',
  '301',
  '304',
  '404',
  '418',
  '451',
  '503',
  '599',
  '999',
] as const;

interface Target {
  /** As sent. */
  sent: string;
  /** As the app must receive it. */
  forApp: string;
  /** True if the target may be unparsable. */
  odd: boolean;
}

/** A target with the token, if any, among its parameters. */
export function oddTarget(random: Random, token: string | null): Target {
  // Most are readable, since refusals show little.
  const readable = random.chance(0.75);
  const pick = (values: readonly [string, ...string[]]): string => {
    for (;;) {
      const value = random.pick(values);
      if (!readable || PLAIN_TARGET.test(value)) return value;
    }
  };
  const depth = Number(random.weighted({ 0: 2, 1: 8, 2: 4, 4: 2, 30: 1 }));
  const long = random.chance(0.02) ? 'x'.repeat(random.pick([2_000, 8_000, 15_500, 17_000] as const)) : '';
  const path = `/${Array.from({ length: depth }, () => pick(SEGMENTS)).join('/')}${long}`.replaceAll('?', '%3f');
  const kept: string[] = Array.from({ length: Number(random.weighted({ 0: 6, 1: 4, 2: 2, 5: 1 })) }, () => pick(PAIRS));
  const bare = kept.length === 0 && !random.chance(0.05) ? path : `${path}?${kept.join('&')}`;
  if (token === null) return { sent: bare, forApp: bare, odd: !PLAIN_TARGET.test(bare) };
  const pairs = [...kept];
  for (let times = random.chance(0.1) ? 2 : 1; times > 0; times -= 1)
    pairs.splice(random.integer(0, pairs.length), 0, spelled(random, token));
  const forApp = kept.length === 0 ? path : `${path}?${kept.join('&')}`;
  return { sent: `${path}?${pairs.join('&')}`, forApp, odd: !PLAIN_TARGET.test(bare) };
}

function spelled(random: Random, token: string): string {
  const escapedFirst = (text: string): string => `%${text.charCodeAt(0).toString(16)}${text.slice(1)}`;
  const name = random.chance(0.9)
    ? 'token'
    : random.pick([escapedFirst('token'), 't%6Fken', '%74%6f%6b%65%6e'] as const);
  return `${name}=${random.chance(0.9) ? token : escapedFirst(token)}`;
}

interface Credential {
  token: string | null;
  cookie: string | null;
  /** True if the credential opens the preview. */
  good: boolean;
  /** Allowed error codes otherwise. */
  codes: readonly ErrorCode[];
}

export function oddCredential(random: Random, endpoint: PreviewEndpoint, endpoints: PreviewEndpoints): Credential {
  const kind = random.weighted({ token: 30, cookie: 50, both: 5, none: 8, otherToken: 7, otherCookie: 6 });
  switch (kind) {
    case 'none':
      return { token: null, cookie: null, good: false, codes: ['preview_link_required'] };
    case 'otherToken':
      return {
        token: altered(random, endpoint, endpoints),
        cookie: null,
        good: false,
        codes: ['preview_link_invalid', 'preview_link_required'],
      };
    case 'otherCookie':
      return {
        token: null,
        cookie: alteredText(random, endpoint.cookie ?? endpoint.token),
        good: false,
        codes: ['preview_link_required'],
      };
    default:
      return {
        token: kind === 'cookie' && endpoint.cookie !== null ? null : endpoint.token,
        cookie: kind === 'token' ? null : endpoint.cookie,
        good: true,
        codes: [],
      };
  }
}

function altered(random: Random, endpoint: PreviewEndpoint, endpoints: PreviewEndpoints): string {
  const others = [endpoints.silent, endpoints.asleep, endpoints.gone].filter(({ host }) => host !== endpoint.host);
  if (random.chance(0.3)) return random.pick(others.map(({ token }) => token) as [string]);
  return `bpt_${alteredText(random, endpoint.token.slice(4))}`;
}

/** Alters a text, using characters that are valid anywhere. */
function alteredText(random: Random, text: string): string {
  const at = random.integer(0, text.length - 1);
  const other = text[at] === 'A' ? 'B' : 'A';
  return random.pick([
    text.slice(0, at) + other + text.slice(at + 1),
    text.slice(0, at),
    text.slice(1),
    `${text}x`,
    `${text}.${text}`,
    text.replace('.', ''),
    text.toUpperCase() === text ? `${text}x` : text.toUpperCase(),
    'x'.repeat(random.pick([1, 255, 256, 257, 4_000] as const)),
    '.',
  ]);
}

interface Headers {
  sent: [string, string][];
  /** Headers that the app must receive unchanged. */
  forApp: [string, string][];
  /** A page of another origin is the sender. */
  isForeign: boolean;
  /** A browser may be opening a page. */
  mayNavigate: boolean;
}

/** Headers of an odd request, with its credential. `secret`: a token allowed in a Referer. */
export function oddHeaders(random: Random, cookie: string | null, secret: string): Headers {
  const forApp = random
    .shuffled<[string, string]>([
      ['accept-language', 'de, *;q=0.1'],
      ['user-agent', random.pick(['', 'x', 'é\xff', 'a'.repeat(3_000)] as const)],
      ['range', random.pick(['bytes=0-', 'bytes=-1', 'bytes=5-2,9-', 'bytes=99999999999999999999-', 'x'] as const)],
      ['if-none-match', '*'],
      ['origin', 'null'],
      ['authorization', "Bearer that is the app's own"],
      ['content-type', random.pick(['', 'application/json', 'multipart/form-data; boundary="', 'é'] as const)],
      ['x-odd', random.pick(['a', '"', 'a\tb', '\x80\xff', '${x}', 'bpt_', ', ,'] as const)],
      ['constructor', 'x'],
      ["!#$%&'*+.^`|~", 'x'],
      ['accept-encoding', 'br, gzip;q=0'],
      ['cache-control', 'no-cache'],
    ])
    .slice(0, random.integer(0, 5));
  const hops = random
    .shuffled<[string, string]>([
      ['keep-alive', HOP_MARKER],
      ['proxy-connection', HOP_MARKER],
      ['proxy-authorization', HOP_MARKER],
      ['te', HOP_MARKER],
      ['trailer', HOP_MARKER],
      ['upgrade', random.pick([HOP_MARKER, 'h2c', 'websocket2'] as const)],
      ['http2-settings', HOP_MARKER],
      ['forwarded', `for=${HOP_MARKER}`],
      ['x-real-ip', HOP_MARKER],
      ['x-forwarded-for', HOP_MARKER],
      ['X-Forwarded-Host', HOP_MARKER],
      ['x-forwarded-anything', HOP_MARKER],
      ['x-berth-user', HOP_MARKER],
      ['x-named', HOP_MARKER],
      ['__proto__', 'x'],
    ])
    .slice(0, Number(random.weighted({ 0: 10, 1: 4, 3: 2, 14: 1 })));
  const sent: [string, string][] = [...forApp, ...hops];
  const close = random.chance(0.9)
    ? 'close'
    : random.pick(['Close', 'close, te', 'close,,', 'close, cookie', 'close, content-length, host'] as const);
  sent.push(['connection', hops.some(([name]) => name === 'x-named') ? `${close}, X-Named` : close]);
  if (random.chance(0.3))
    sent.push(['accept', random.pick(['text/html', '*/*', 'text/html;q=0', 'application/json'] as const)]);
  if (random.chance(0.06)) sent.push(['referer', `http://${HOP_MARKER.slice(0, 3)}.test/a?b=c&token=${secret}`]);
  if (random.chance(0.08)) sent.push(['expect', random.pick(['100-continue', '100-Continue', HOP_MARKER] as const)]);
  if (cookie !== null || random.chance(0.1)) {
    const ours = cookie === null ? [] : [`berth_preview=${cookie}`];
    const others = random
      .shuffled(['a=b', 'c="d', '', '=', 'berth', 'x=berth_previe', 'é=\xe9'] as const)
      .slice(0, random.integer(0, 2));
    sent.push(['cookie', random.shuffled([...ours, ...others]).join(random.pick(['; ', ';', ' ; '] as const))]);
  }
  const has = (header: string): boolean => sent.some(([name]) => name === header);
  return {
    sent: random.shuffled(sent),
    forApp,
    isForeign: has('origin'),
    mayNavigate: sent.some(([name, value]) => name === 'accept' && value.includes('text/html')) && !has('upgrade'),
  };
}

interface Body {
  headers: [string, string][];
  pieces: Buffer[];
  digest: string;
  bytes: number;
}

export function oddBody(random: Random): Body {
  const digestOf = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');
  const kind = random.weighted({ none: 55, empty: 4, length: 22, chunked: 20 });
  if (kind === 'none') return { headers: [], pieces: [], digest: digestOf(Buffer.alloc(0)), bytes: 0 };
  const length =
    kind === 'empty'
      ? 0
      : random.weighted({ 1: 8, 0: 2 }) === '1'
        ? random.integer(1, 300)
        : random.integer(1_000, 250_000);
  // Some resemble a request, for a parser that miscounts.
  const bytes = random.chance(0.2)
    ? Buffer.from('GET /smuggled HTTP/1.1\r\nhost: x\r\n\r\n'.repeat(Math.ceil(length / 35)).slice(0, length))
    : randomBytes(random, length);
  const cut = (): Buffer[] => {
    const parts: Buffer[] = [];
    for (let at = 0; at < length;) {
      const size = random.pick([1, 7, 100, 5_000, 65_536, 100_000] as const) + (length > 10_000 ? 20_000 : 0);
      parts.push(bytes.subarray(at, at + size));
      at += size;
    }
    return parts;
  };
  if (kind !== 'chunked')
    return { headers: [['content-length', String(length)]], pieces: cut(), digest: digestOf(bytes), bytes: length };
  const chunks = cut().map((part) => {
    const extension = random.chance(0.1) ? ';a=b' : '';
    const size = part.byteLength.toString(16);
    return Buffer.concat([
      Buffer.from(`${random.chance(0.1) ? `00${size.toUpperCase()}` : size}${extension}\r\n`),
      part,
      Buffer.from('\r\n'),
    ]);
  });
  const last = Buffer.from(`0\r\n${random.chance(0.2) ? 'x-trailing: 1\r\n' : ''}\r\n`);
  return {
    headers: [['transfer-encoding', random.chance(0.9) ? 'chunked' : 'Chunked']],
    pieces: [...chunks, last],
    digest: digestOf(bytes),
    bytes: length,
  };
}

/** Instructs the app how to respond. */
export function oddAnswer(random: Random): { header: [string, string]; way: AppBehavior; status: number } {
  const way = random.weighted<AppBehavior>({
    length: 40,
    chunked: 15,
    close: 8,
    odd: 15,
    hints: 4,
    early: 4,
    break: 3,
    nothing: 3,
    garbage: 3,
    upgrade: 5,
  });
  const status = random.pick(STATUSES);
  const padding = random.chance(0.8) ? random.integer(0, 300) : random.integer(1_000, 100_000);
  return { header: [APP_ORDER_HEADER, `${status} ${way} ${padding}`], way, status: Number(status) };
}
