// Single file calls with odd arguments and bodies. Every response must match the contract.
import type { Random } from '../../world/random.ts';
import type { FuzzKind, FuzzRequest, Turn } from '../core/kind.ts';
import { escaped, oddLength, oddPath, oddText, randomBytes } from '../core/odd-values.ts';

const DEPTHS = [
  '1',
  '2',
  '3',
  '4',
  '5',
  '0',
  '-1',
  '6',
  '99999999999999999999',
  '',
  'x',
  '1.5',
  '1e3',
  ' 3',
  '0x1',
  '１',
] as const;

const ESCAPES = [String.raw`\u0001`, String.raw`\ud800`, String.raw`\u0000`] as const;

export const fileRequests: FuzzKind = {
  name: 'file-requests',
  weight: 70,
  run: async (turn) => {
    await turn.send(fileRequest(turn));
  },
};

function fileRequest({ random, world }: Turn): FuzzRequest {
  const id = random.chance(0.93) ? random.pick(world.awake as [string]) : random.pick(world.away as [string]);
  const base = `/v1/sandboxes/${id}`;
  const path = `path=${escaped(random, oddPath(random))}`;
  switch (random.weighted({ list: 20, snapshot: 20, read: 30, write: 30, other: 3 })) {
    case 'list':
      return {
        method: random.chance(0.97) ? 'GET' : 'HEAD',
        target: `${base}/files${random.chance(0.95) ? `?${path}` : ''}`,
      };
    case 'snapshot': {
      const depth = random.chance(0.5) ? `&depth=${encodeURIComponent(random.pick(DEPTHS))}` : '';
      if (random.chance(0.25)) return { method: 'GET', target: `${base}/files/snapshot?${depth.slice(1)}` };
      return {
        method: 'GET',
        target: `${base}/files/snapshot?${path}${depth}${random.chance(0.02) ? `&${path}` : ''}`,
      };
    }
    case 'read':
      return {
        method: random.chance(0.97) ? 'GET' : 'HEAD',
        target: `${base}/file?${random.chance(0.98) ? path : 'pth=a'}`,
      };
    case 'write':
      return { method: 'PUT', target: `${base}/file`, ...writeBody(random) };
    default:
      return { method: random.pick(['DELETE', 'POST', 'PATCH', 'OPTIONS'] as const), target: `${base}/file?${path}` };
  }
}

function writeBody(random: Random): Pick<FuzzRequest, 'body' | 'headers'> {
  const path = oddPath(random);
  const length = oddLength(random);
  switch (random.weighted({ text: 40, bytes: 40, escapes: 5, fields: 10, broken: 8 })) {
    case 'text':
      return {
        body: JSON.stringify({
          path,
          content: oddText(random, length),
          ...(random.chance(0.3) ? { encoding: 'utf8' } : {}),
        }),
      };
    case 'bytes':
      return {
        body: JSON.stringify({ path, content: randomBytes(random, length).toString('base64'), encoding: 'base64' }),
      };
    case 'escapes':
      // Escapes every byte; some escapes are invalid.
      return {
        body: `{"path":"f","content":"${random.pick(ESCAPES).repeat(Math.min(length, 300_000))}"}`,
      };
    case 'fields':
      return { body: JSON.stringify(oddFields(random, path)) };
    default:
      return oddBody(random, path);
  }
}

function oddFields(random: Random, path: string): unknown {
  const odd = (): unknown =>
    random.pick([null, 0, -1, true, [], {}, '', 'x', ['x'], { a: { b: 1 } }] as [unknown, ...unknown[]]);
  return random.pick([
    () => ({ path }),
    () => ({ content: 'x' }),
    () => ({ path: odd(), content: 'x' }),
    () => ({ path, content: odd() }),
    () => ({ path, content: 'x', encoding: odd() }),
    () => ({ path, content: 'not base64!', encoding: 'base64' }),
    () => ({ path, content: 'AA', encoding: 'base64' }),
    () => ({ path, content: 'x', mode: 0o777 }),
    () => odd(),
  ] as [() => unknown, ...(() => unknown)[]])();
}

function oddBody(random: Random, path: string): Pick<FuzzRequest, 'body' | 'headers'> {
  const body = JSON.stringify({ path, content: 'x' });
  return random.pick([
    () => ({ body: body.slice(0, random.integer(0, body.length - 1)) }),
    () => ({ body: `${body}}` }),
    () => ({
      body: Buffer.concat([Buffer.from('{"path":"f","content":"'), Buffer.from([0xff, 0xc3]), Buffer.from('"}')]),
    }),
    () => ({ body: `{"__proto__":{"path":"x"},"path":"f","content":""}` }),
    () => ({ body: `{"path":"f","content":${'['.repeat(2_000)}${']'.repeat(2_000)}}` }),
    () => ({ body, headers: { 'content-type': 'text/plain' } }),
    () => ({ body, headers: { 'content-type': 'application/json; charset=utf-16' } }),
    () => ({ body: '' }),
    () => ({}),
    () => ({ body, headers: { authorization: 'Bearer nobody' } }),
  ] as [() => Pick<FuzzRequest, 'body' | 'headers'>, ...(() => Pick<FuzzRequest, 'body' | 'headers'>)[]])();
}
