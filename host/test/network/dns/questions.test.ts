// Messages of guests answered by the guest gateway, and a gateway that lies about them.
import assert from 'node:assert/strict';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it, type TestContext } from 'node:test';
import { answerBehind } from '../../../src/gateway/dns.ts';
import { openGateway } from '../../../src/gateway/launch.ts';
import { FRAME, writeJson } from '../../../src/gateway/frames.ts';
import { rcodeOf, RCODE } from '../../../src/network/dns/message.ts';
import type { NameServer } from '../../../src/network/dns/upstream-query.ts';
import type { AnswerMessage, GuestMessage } from '../../../src/network/dns/questions.ts';
import { startGateway, type TestGateway } from '../../gateway/ways.ts';
import { answerOf, question, ZONE_ADDRESS } from './dns-zone.ts';

const NEVER = new AbortController().signal;
const OPEN = { mode: 'open', names: [] } as const;

async function nameServer(t: TestContext): Promise<NameServer> {
  const socket = createSocket('udp4');
  t.after(() => socket.close());
  socket.on('message', (query, from) => socket.send(answerOf(query, 'udp'), from.port, from.address));
  socket.bind({ address: '127.0.0.1', port: 0 });
  await once(socket, 'listening');
  return { address: '127.0.0.1', port: socket.address().port };
}

describe('a message of a guest, answered by the gateway,', () => {
  let started: TestGateway;
  before(async () => {
    started = await startGateway();
  });
  after(() => started.close());

  const ask = (bytes: Buffer, more: Partial<GuestMessage>): ReturnType<AnswerMessage> =>
    started.answer({ guest: '10.0.0.1', bytes, by: 'udp', servers: [], policy: OPEN, ...more }, NEVER);

  it('has the response of the name server, its name and its addresses', async (t) => {
    const bytes = question(7, 'www.internet.test');
    const { answer, name, refused, addresses } = await ask(bytes, { servers: [await nameServer(t)] });
    assert.deepEqual(answer, answerOf(bytes, 'udp'));
    assert.deepEqual(
      [name, refused, addresses.map(({ address }) => address)],
      ['www.internet.test', false, [ZONE_ADDRESS]],
    );
  });

  it('is refused if the policy does not allow the name, and asks no name server', async () => {
    const policy = { mode: 'allow', names: ['other.test'] } as const;
    const { answer, refused, withheld } = await ask(question(7, 'www.internet.test'), { policy });
    assert.deepEqual([rcodeOf(answer ?? Buffer.alloc(12)), refused, withheld], [RCODE.refused, true, null]);
  });

  it('is SERVFAIL without a response of a name server', async () => {
    const { answer } = await ask(question(7, 'www.internet.test'), {});
    assert.equal(rcodeOf(answer ?? Buffer.alloc(12)), RCODE.serverFailure);
  });

  it('is dropped if it is no question', async () => {
    assert.equal((await ask(Buffer.from('no question'), {})).answer, null);
  });
});

describe('a gateway in foreign hands', () => {
  let folder: string;
  let lie: unknown;
  const server = createServer((connection: Socket) => {
    connection.on('error', () => undefined);
    connection.once('data', () => writeJson(connection, FRAME.result, lie));
  });
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'berth-hostile-dns-'));
    server.listen(join(folder, 'socket'));
    await once(server, 'listening');
  });
  after(async () => {
    server.close();
    await rm(folder, { recursive: true });
  });

  const FAIR = { answer: null, withheld: null, name: 'a.test', refused: false, addresses: [] };
  for (const [what, said] of Object.entries({
    'a name with a line feed': { ...FAIR, name: 'a\n.test' },
    'an address that is none': { ...FAIR, addresses: [{ address: '1.2.3.4; drop', ttlSeconds: 1 }] },
    'more addresses than a response has': {
      ...FAIR,
      addresses: Array.from({ length: 65 }, () => ({ address: '1.2.3.4', ttlSeconds: 1 })),
    },
    'an answer longer than a message': { ...FAIR, answer: Buffer.alloc(70_000).toString('base64') },
    'no JSON object': null,
  })) {
    it(`cannot give ${what}`, async () => {
      lie = said;
      const answer = answerBehind({ connect: () => openGateway(join(folder, 'socket')) });
      const bytes = question(1, 'a.test');
      await assert.rejects(answer({ guest: 'x', bytes, by: 'udp', servers: [], policy: OPEN }, NEVER));
    });
  }
});
