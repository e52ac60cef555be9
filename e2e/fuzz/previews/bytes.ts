// Bytes that no client would send to a preview host: ambiguous heads and framings, truncated
// requests, and valid requests with some bytes changed.
import type { ErrorCode } from '@berth/contract/route/errors.ts';
import type { Random } from '../../world/random.ts';
import type { FuzzKind } from '../core/kind.ts';
import { randomBytes } from '../core/odd-values.ts';
import { UNREADABLE } from './requests.ts';
import type { Expected, PreviewRequest, PreviewEndpoints } from '../core/preview-request.ts';

const ODD_LENGTHS = ['-1', '+4', '0x4', '4.0', '', ' ', '1e1', '99999999999999999999999', '٤'] as const;
const ODD_CODINGS = [
  'xchunked',
  'gzip, chunked',
  'chunked, chunked',
  'identity',
  'chunked;a=b',
  '\x0bchunked',
  '',
] as const;
const SMUGGLED = 'GET /smuggled HTTP/1.1\r\nhost: x\r\n\r\n';
/** Error codes that a preview host may return, except faults. */
const OWN_ANSWERS: readonly ErrorCode[] = [
  ...UNREADABLE,
  'preview_link_required',
  'preview_link_invalid',
  'preview_not_supported',
  'preview_answer_broken',
];

export const previewBytes: FuzzKind = {
  name: 'preview-bytes',
  weight: 25,
  run: async ({ random, sendPreview, world }) => {
    await sendPreview(random.chance(0.5) ? odd(random, world.previews) : changed(random, world.previews));
  },
};

/** Ambiguous requests are refused; the app never sees them. */
function odd(random: Random, { app }: PreviewEndpoints): PreviewRequest {
  const head = (
    lines: readonly string[],
    first = `${random.pick(['POST', 'GET', 'DELETE', 'PUT'] as const)} /a HTTP/1.1`,
  ): string => [first, `host: ${app.host}`, `cookie: berth_preview=${app.cookie}`, ...lines, '', ''].join('\r\n');
  const first = (line: string): string => head(['connection: close'], line);
  const text = random.pick([
    head(['content-length: 4', 'transfer-encoding: chunked']) + `0\r\n\r\n${SMUGGLED}`,
    head(['transfer-encoding: chunked', 'content-length: 4']) + `0\r\n\r\n${SMUGGLED}`,
    head(['content-length: 4', 'content-length: 5']) + `abcde${SMUGGLED}`,
    head(['content-length: 4, 4']) + `abcd${SMUGGLED}`,
    head([`content-length: ${random.pick(ODD_LENGTHS)}`]) + 'abcd',
    head([`transfer-encoding: ${random.pick(ODD_CODINGS)}`]) + `0\r\n\r\n${SMUGGLED}`,
    head(['transfer-encoding: chunked', 'transfer-encoding: identity']) + `0\r\n\r\n${SMUGGLED}`,
    head([`x-a: b${random.pick(['\r\n ', '\n', '\r', '\0', '\r\n\t', '\x01'] as const)}transfer-encoding: chunked`]) +
      SMUGGLED,
    head([random.pick(['content-length : 4', ' x: y', ': y', 'x', 'x y: z', 'é: x', '"x": y'] as const)]) + 'abcd',
    head(['transfer-encoding: chunked']) +
      random.pick([
        'zz\r\nabc\r\n0\r\n\r\n',
        '1\r\nabc\r\n0\r\n\r\n',
        '1\na\n0\n\n',
        '-1\r\n\r\n',
        '1;\r\r\na\r\n',
        `${'f'.repeat(17)}\r\n`,
        `1;${'x'.repeat(40_000)}`,
      ] as const),
    head(Array.from({ length: random.pick([50, 300, 5_000] as const) }, (_, index) => `x-${index}: ${'y'.repeat(60)}`)),
    head([`x-a: ${'b'.repeat(random.pick([16_300, 20_000, 100_000] as const))}`]),
    first(
      random.pick([
        'get / HTTP/1.1',
        'BREW / HTTP/1.1',
        'GET  / HTTP/1.1',
        'GET / HTTP/1.2',
        'GET / HTTP/2.0',
        'GET / HTTP/0.9',
        'GET /',
        'GET / x HTTP/1.1',
        ' GET / HTTP/1.1',
        'GET a HTTP/1.1',
        'GET ?a HTTP/1.1',
        'GET * HTTP/1.1',
        'GET \\ HTTP/1.1',
        'PRI * HTTP/2.0',
        'GET /\0 HTTP/1.1',
        'GET /\x7f HTTP/1.1',
        'GET ://x HTTP/1.1',
        'OPTIONS * HTTP/1.1',
        'GET http:// HTTP/1.1',
        'GET ftp://x/ HTTP/1.1',
        'GET http://[/ HTTP/1.1',
      ] as const),
    ),
    `CONNECT ${app.host} HTTP/1.1\r\nhost: ${app.host}\r\n\r\n${SMUGGLED}`,
    head(['upgrade: websocket', 'connection: upgrade', 'content-length: 4'], 'GET /a HTTP/1.1') + `abcd${SMUGGLED}`,
    head(['upgrade: websocket', 'connection: upgrade', 'transfer-encoding: chunked'], 'GET /a HTTP/1.1') +
      `0\r\n\r\n${SMUGGLED}`,
    head(['content-length: 1000']) + 'abcd',
    head(['transfer-encoding: chunked']) + '5\r\nab',
    head([]).slice(0, random.integer(1, 60)),
    '\r\n'.repeat(random.integer(1, 50)),
    `\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03${app.host}`,
    randomBytes(random, random.integer(1, 20_000)).toString('latin1'),
  ]);
  const bytes = Buffer.from(text, 'latin1');
  return {
    what: 'odd bytes',
    pieces: inPieces(random, bytes),
    end: true,
    expected: [{ ...anyOf(methodOf(text)), nothing: true, app: {} }],
  };
}

/** Uses the spare credential: its name may be among the changed bytes, so that the app sees it. */
function changed(random: Random, { spare }: PreviewEndpoints): PreviewRequest {
  const method = random.pick(['GET', 'POST', 'PUT', 'DELETE'] as const);
  const body = random.pick(['', 'content-length: 37\r\n', 'transfer-encoding: chunked\r\n'] as const);
  const sent = body === '' ? '' : body.startsWith('c') ? 'x'.repeat(37) : '5\r\nabcde\r\n0\r\n\r\n';
  // The host is unchanged, so that the responder is known.
  const before = `${method} /a/b?c=d HTTP/1.1\r\nhost: ${spare.host}\r\n`;
  const rest =
    `connection: close\r\ncookie: a=b; berth_preview=${spare.cookie}\r\n` +
    `accept: */*\r\nx-fuzz-do: 200 length 10\r\n${body}\r\n${sent}`;
  let bytes: Buffer = Buffer.from(rest, 'latin1');
  for (let times = random.integer(1, 4); times > 0; times -= 1) bytes = mutated(random, bytes);
  return {
    what: 'changed bytes',
    pieces: inPieces(random, Buffer.concat([Buffer.from(before, 'latin1'), bytes])),
    end: true,
    expected: [{ ...anyOf(method), nothing: true, app: { mayTruncate: true } }],
  };
}

function mutated(random: Random, bytes: Buffer): Buffer {
  const at = random.integer(0, Math.max(0, bytes.byteLength - 1));
  const to = Math.min(bytes.byteLength, at + random.integer(1, 20));
  const [before, part, after] = [bytes.subarray(0, at), bytes.subarray(at, to), bytes.subarray(to)];
  switch (random.weighted({ change: 4, insert: 3, remove: 3, double: 2, cut: 1, lines: 2 })) {
    case 'change':
      return Buffer.concat([before, randomBytes(random, 1), bytes.subarray(at + 1)]);
    case 'insert':
      return Buffer.concat([before, randomBytes(random, random.integer(1, 8)), bytes.subarray(at)]);
    case 'remove':
      return Buffer.concat([before, after]);
    case 'double':
      return Buffer.concat([before, part, part, after]);
    case 'cut':
      return Buffer.from(before);
    default:
      return Buffer.concat([
        before,
        Buffer.from(random.pick(['\r\n', '\n', '\r', '\r\n\r\n', ':', ' ', '\0'] as const)),
        bytes.subarray(at),
      ]);
  }
}

function anyOf(method: string): Expected {
  return { method, codes: OWN_ANSWERS };
}

function methodOf(text: string): string {
  return /^[A-Z]+/.exec(text)?.[0] ?? 'GET';
}

function inPieces(random: Random, bytes: Buffer): Buffer[] {
  if (random.chance(0.6)) return [bytes];
  const at = random.integer(0, bytes.byteLength);
  return [bytes.subarray(0, at), bytes.subarray(at)];
}
