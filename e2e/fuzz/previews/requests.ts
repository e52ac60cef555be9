// Preview requests, single or pipelined on one connection: valid and invalid credentials, hosts of
// every spelling, odd targets, headers and bodies. Checks who responds, and what the app receives.
import { createHash } from 'node:crypto';
import type { ErrorCode } from '@berth/contract/route/errors.ts';
import { GUEST_PORT } from '@berth/protocol/guest-limits.ts';
import type { Random } from '../../world/random.ts';
import type { FuzzKind, Turn } from '../core/kind.ts';
import { randomBytes } from '../core/odd-values.ts';
import { oddAnswer, oddBody, oddCredential, oddHeaders, oddTarget } from './parts.ts';
import type {
  PreviewEndpoint,
  Expected,
  AppResponse,
  PreviewRequest,
  PreviewEndpoints,
} from '../core/preview-request.ts';

const METHODS = [
  'GET',
  'GET',
  'GET',
  'HEAD',
  'POST',
  'PUT',
  'PATCH',
  'DELETE',
  'OPTIONS',
  'TRACE',
  'PROPFIND',
  'M-SEARCH',
  'QUERY',
] as const;
/** Error codes for unparsable requests. */
export const UNREADABLE: readonly ErrorCode[] = ['invalid_request', 'request_header_too_large'];
/** Head size above which a request may be too long; the service accepts 16 KiB. */
/** Answers of an app that does not upgrade. */
const NO_UPGRADE = ['length', 'chunked', 'nothing', 'garbage', 'close'] as const;
const LONG_HEAD_BYTES = 14_000;

export const previewRequests: FuzzKind = {
  name: 'preview-requests',
  weight: 65,
  run: async (turn) => {
    const { random, sendPreview } = turn;
    if (random.chance(0.06)) await sendPreview(webSocket(turn));
    else if (random.chance(0.05)) await sendPreview(pipelined(turn));
    else await sendPreview(oddRequest(turn));
  },
};

interface Place {
  name: string;
  endpoint: PreviewEndpoint;
  /** Responders when the credential is valid. */
  opened: Pick<Expected, 'codes' | 'app' | 'signIn'>;
}

function oddPlace(random: Random, endpoints: PreviewEndpoints): Place {
  const at = (name: string, endpoint: PreviewEndpoint, ...codes: ErrorCode[]): Place => ({
    name,
    endpoint,
    opened: { codes },
  });
  switch (
    random.weighted({ app: 60, silent: 8, revoked: 5, expired: 4, team: 5, asleep: 4, gone: 3, guest: 4, nobody: 3 })
  ) {
    case 'silent':
      return at('no listener', endpoints.silent, 'port_refused');
    case 'revoked':
      return at('revoked', endpoints.revoked, 'preview_link_revoked');
    case 'expired':
      return at('expired', endpoints.expired, 'preview_link_expired');
    case 'team':
      return { name: 'team', endpoint: endpoints.team, opened: { codes: ['preview_link_required'], signIn: true } };
    case 'asleep':
      return at('asleep', endpoints.asleep, 'preview_sandbox_asleep');
    case 'gone':
      return at('deleted', endpoints.gone, 'preview_not_found');
    case 'guest':
      // No link leads there: credentials of another port have no effect.
      return at(
        'guest daemon',
        { ...endpoints.app, host: endpoints.app.host.replace(/^\d+-/, `${GUEST_PORT}-`) },
        'preview_link_invalid',
        'preview_link_required',
      );
    case 'nobody':
      return at(
        'nobody',
        { ...endpoints.app, host: `3000-${'a'.repeat(24)}.${endpoints.previewHost}` },
        'preview_link_invalid',
        'preview_link_required',
      );
    default:
      return { name: 'app', endpoint: endpoints.app, opened: { codes: [], app: {} } };
  }
}

interface Spelling {
  hosts: string[];
  /** Before the path. */
  authority: string;
  /** Effect on the response. */
  becomes: 'same' | 'preview_not_found' | 'invalid_request' | 'service';
}

function oddHost(random: Random, host: string): Spelling {
  const [name = '', port = ''] = host.split(':');
  const as = (becomes: Spelling['becomes'], ...hosts: string[]): Spelling => ({ hosts, authority: '', becomes });
  if (random.chance(0.75)) return as('same', host);
  return random.pick([
    as('same', name),
    as('same', host.toUpperCase()),
    as('same', `${name}:1`),
    { hosts: [host], authority: `http://${host}`, becomes: 'same' },
    { hosts: [host], authority: `HTTP://${host.toUpperCase()}`, becomes: 'same' },
    as('preview_not_found', `${name}.:${port}`),
    as('preview_not_found', `a@${host}`),
    as('preview_not_found', `0${host}`),
    as('preview_not_found', `x.${host}`),
    as('preview_not_found', `${name}:0${port}`),
    as('preview_not_found', `${name}:99999`),
    as('preview_not_found', `${name},localhost`),
    as('preview_not_found', `99999${host.replace(/^\d+/, '')}`),
    as('invalid_request', host, host),
    as('invalid_request', 'localhost', host),
    as('invalid_request', host, '127.0.0.1'),
    { hosts: [host], authority: 'http://localhost', becomes: 'invalid_request' },
    { hosts: ['localhost'], authority: `http://${host}`, becomes: 'invalid_request' },
    { hosts: [host], authority: `http://a@${host}`, becomes: 'invalid_request' },
    as('service', 'localhost'),
    as('service', '127.0.0.1'),
    as('service', `${name}.evil.test`),
    as('service', `${name}evil${port}`),
  ] as [Spelling, ...Spelling[]]);
}

interface BuiltRequest {
  name: string;
  bytes: Buffer[];
  expected: Expected;
  mayBeUnreadable: boolean;
}

/** `plain`: with an ordinary host, head and framing; `keep` keeps the connection. */
function buildRequest({ random, world }: Turn, plain?: { keep: boolean }): BuiltRequest {
  const endpoints = world.previews;
  const place =
    plain === undefined
      ? oddPlace(random, endpoints)
      : { name: 'app', endpoint: endpoints.app, opened: { codes: [], app: {} } };
  const spelling =
    plain === undefined
      ? oddHost(random, place.endpoint.host)
      : { hosts: [place.endpoint.host], authority: '', becomes: 'same' as const };
  const credential = oddCredential(random, place.endpoint, endpoints);
  const method = random.pick(METHODS);
  const target = oddTarget(random, credential.token);
  const headers = oddHeaders(random, credential.cookie, endpoints.app.token);
  const body = oddBody(random);
  const answer = oddAnswer(random);
  const lines = [...headers.sent, ...body.headers, answer.header].filter(
    ([name]) => plain?.keep !== true || (name !== 'connection' && name !== 'x-named'),
  );
  const hosts = spelling.hosts.map((host) => ['host', host] as [string, string]);
  const head = [
    `${method} ${spelling.authority}${target.sent} HTTP/1.1`,
    ...random.shuffled([...lines]).map(([name, value]) => `${name}: ${value}`),
    ...hosts.map(([name, value]) => `${random.chance(0.9) ? name : 'HOST'}: ${value}`),
  ];
  const bytes = Buffer.from(`${head.join('\r\n')}\r\n\r\n`, 'latin1');
  const expects = headers.sent.some(([name]) => name === 'expect');
  const app: AppResponse = {
    ...(['nothing', 'garbage', 'break'].includes(answer.way) || answer.way === 'upgrade'
      ? {}
      : { status: answer.status }),
    target: target.forApp,
    digest: body.digest,
    // Node encodes the head of a request with Expect in UTF-8.
    headers: headers.forApp
      .filter(([, value]) => !expects || /^[\t -~]*$/.test(value))
      .filter(([name]) => !headers.sent.some(([other, value]) => other === 'connection' && value.includes(name))),
    mayTruncate: answer.way === 'break',
  };
  const opened = expectedOf({ method, place, spelling, good: credential.good, codes: credential.codes, app });
  const isForeign = headers.isForeign && spelling.becomes === 'same';
  const expected: Expected = isForeign ? { method, codes: ['preview_cross_origin'] } : opened;
  const isLong = bytes.byteLength > LONG_HEAD_BYTES;
  const codes = [...expected.codes];
  if (target.odd) codes.push('invalid_request');
  if (isLong) codes.push('request_header_too_large');
  if (expected.app !== undefined && ['nothing', 'garbage', 'early', 'break'].includes(answer.way))
    codes.push('preview_answer_broken');
  return {
    name: spelling.becomes === 'same' ? place.name : `${spelling.becomes} host`,
    bytes: [bytes, ...body.pieces],
    expected: { ...expected, codes, withoutToken: credential.good && credential.token !== null && headers.mayNavigate },
    mayBeUnreadable: target.odd || isLong,
  };
}

function expectedOf(given: {
  method: string;
  place: Place;
  spelling: Spelling;
  good: boolean;
  codes: readonly ErrorCode[];
  app: AppResponse;
}): Expected {
  const { method, place, spelling, good, codes, app } = given;
  if (spelling.becomes === 'service') return { method, codes: [], service: true };
  if (spelling.becomes !== 'same') return { method, codes: [spelling.becomes] };
  if (!good) return { method, codes };
  return { method, ...place.opened, ...(place.opened.app === undefined ? {} : { app }) };
}

function oddRequest(turn: Turn): PreviewRequest {
  const { name, bytes, expected } = buildRequest(turn);
  return { what: name, pieces: bytes, expected: [expected] };
}

function pipelined(turn: Turn): PreviewRequest {
  const count = turn.random.integer(2, 4);
  const asked = Array.from({ length: count }, (_, index) => buildRequest(turn, { keep: index < count - 1 }));
  return {
    what: 'behind each other',
    pieces: turn.random.chance(0.5)
      ? [Buffer.concat(asked.flatMap(({ bytes }) => bytes))]
      : asked.flatMap(({ bytes }) => bytes),
    // An unparsable request may close the connection and lose the earlier responses.
    expected: asked.map(({ expected }) => ({ ...expected, nothing: asked.some((one) => one.mayBeUnreadable) })) as [
      Expected,
      ...Expected[],
    ],
  };
}

function webSocket({ random, world }: Turn): PreviewRequest {
  const endpoints = world.previews;
  const place = oddPlace(random, endpoints);
  const spelling = oddHost(random, place.endpoint.host);
  const credential = oddCredential(random, place.endpoint, endpoints);
  const target = oddTarget(random, credential.token);
  const agrees = random.chance(0.7);
  const head = [
    `GET ${spelling.authority}${target.sent} HTTP/1.1`,
    ...spelling.hosts.map((host) => `host: ${host}`),
    `connection: ${random.pick(['Upgrade', 'upgrade', 'keep-alive, Upgrade'] as const)}`,
    `upgrade: ${random.pick(['websocket', 'WebSocket', ' websocket '] as const)}`,
    ...(random.chance(0.9) ? ['sec-websocket-version: 13', 'sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA=='] : []),
    ...(credential.cookie === null ? [] : [`cookie: a=b; berth_preview=${credential.cookie}`]),
    ...(random.chance(0.2) ? ['accept: text/html'] : []),
    `x-fuzz-do: ${random.pick(['200', '404', '204'] as const)} ${agrees ? 'upgrade' : random.pick(NO_UPGRADE)} 0`,
  ];
  const expected = expectedOf({
    method: 'GET',
    place,
    spelling,
    good: credential.good,
    codes: credential.codes,
    app: { target: target.forApp },
  });
  const { signIn: _, ...rest } = expected;
  const codes = [...expected.codes, ...(target.odd ? (['invalid_request'] as const) : []), ...UNREADABLE.slice(1)];
  if (expected.app !== undefined && !agrees) codes.push('preview_answer_broken');
  const body = createHash('sha256').update(String(random.next())).digest();
  return {
    what: `WebSocket, ${spelling.becomes === 'same' ? place.name : `${spelling.becomes} host`}`,
    pieces: [Buffer.from(`${head.join('\r\n')}\r\n\r\n`, 'latin1')],
    expected: [{ ...rest, codes }],
    echo: random.chance(0.9) ? Buffer.concat([body, randomBytes(random, random.integer(0, 100_000))]) : body,
  };
}
