// The process of the model gateway: its confinement, its death, and where the key is not.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { request, type IncomingMessage, type ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { pino } from 'pino';
import { until } from '../../../os/test/until.ts';
import { freePort } from '../../../protocol/test/free-port.ts';
import { ModelGateway } from '../../src/model-gateway/client.ts';
import { FAKE_MODEL_GATEWAY_UID } from '../../src/network/slots/slot.ts';
import { fieldsOf, programOf } from '../gateway/process-facts.ts';
import { accessTo, KEY, startProvider } from './model-world.ts';

const NET_BIND_SERVICE = '0000000000000400';
let folder: string;
let models: ModelGateway;
const logged: string[] = [];

const makeGateway = (lowPorts: boolean): ModelGateway =>
  new ModelGateway({
    ...{ folder: join(folder, 'gateway'), uid: FAKE_MODEL_GATEWAY_UID, lowPorts, ca: null },
    log: pino({}, { write: (line: string) => void logged.push(line) }),
  });
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'berth-models-'));
  models = makeGateway(true);
});
after(async () => {
  await models.close();
  await rm(folder, { recursive: true });
});

function ask(port: number, method = 'POST') {
  const outgoing = request({ host: '127.0.0.1', port, path: '/openai/v1/responses', method, agent: false });
  return outgoing.on('error', () => undefined).end('{}');
}
async function statusOf(port: number): Promise<number | undefined> {
  const [response] = (await once(ask(port), 'response')) as [IncomingMessage];
  response.resume();
  return response.statusCode;
}

test('no process runs before the first VM is served', async () => {
  await models.forget('never-served');
  assert.equal(models.pid, null);
});

test('has one privilege, to listen on a low port, and shows the key nowhere', async (t) => {
  const provider = await startProvider(t, (_request, response) => void response.end());
  const port = await freePort();
  await models.serve('vm', { address: '127.0.0.1', port });
  await models.setAccess('vm', accessTo(provider));
  assert.equal(await statusOf(port), 200);

  const pid = await programOf(models.pid);
  const status = await fieldsOf(pid);
  for (const field of ['Uid', 'Gid']) assert.equal(status.get(field), Array(4).fill(FAKE_MODEL_GATEWAY_UID).join('\t'));
  assert.equal(status.get('Groups'), '');
  for (const field of ['CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb'])
    assert.equal(status.get(field), NET_BIND_SERVICE, field);
  assert.equal(status.get('NoNewPrivs'), '1');
  assert.equal(status.get('Seccomp'), '2');
  const limits = await readFile(`/proc/${pid}/limits`, 'utf8');
  assert.match(limits, /^Max data size +1073741824 +1073741824 /m);
  assert.match(limits, /^Max core file size +0 +0 /m);
  for (const path of ['/root', '/var', '/run', '/tmp', '/etc/shadow', '/etc/passwd', folder])
    assert.ok(!existsSync(`/proc/${pid}/root${path}`), path);
  for (let one: number | null = models.pid; one !== null; one = one === pid ? null : await childOf(one)) {
    for (const file of ['cmdline', 'environ'])
      assert.ok(!(await readFile(`/proc/${one}/${file}`, 'utf8')).includes(KEY), `${file} of ${one}`);
  }
  assert.ok(!logged.join('').includes(KEY));
  await models.forget('vm');
});

test('without low ports it has no privilege at all', async () => {
  const other = makeGateway(false);
  try {
    await other.serve('vm', { address: '127.0.0.1', port: await freePort() });
    assert.match((await fieldsOf(await programOf(other.pid))).get('CapEff') ?? '', /^0+$/);
    await assert.rejects(other.serve('low', { address: '127.0.0.1', port: 354 }), /EACCES/);
  } finally {
    await other.close();
  }
});

test('killed in mid stream it costs that request; the next one has the key again', async (t) => {
  const held: ServerResponse[] = [];
  const provider = await startProvider(t, (_request, response) => {
    held.push(response);
    if (held.length > 1) response.end();
    else response.write('part');
  });
  const ports = { one: await freePort(), two: await freePort(), unknown: await freePort() };
  for (const [vm, port] of Object.entries(ports)) await models.serve(vm, { address: '127.0.0.1', port });
  for (const vm of ['one', 'two']) await models.setAccess(vm, accessTo(provider));
  const [response] = (await once(ask(ports.one), 'response')) as [IncomingMessage];
  const { pid } = models;
  process.kill(await programOf(pid), 'SIGKILL');
  await assert.rejects(response.toArray(), { code: 'ECONNRESET' });
  await until('another gateway serves', async () => (models.pid === null || models.pid === pid ? null : true));
  assert.equal(await statusOf(ports.one), 200);
  assert.equal(await statusOf(ports.two), 200);
  const waiting = ask(ports.unknown);
  await once(waiting, 'finish');
  await models.setAccess('unknown', accessTo(provider));
  await once(waiting, 'response');
  assert.ok(logged.some((line) => line.includes('the model gateway exited')));
  for (const vm of Object.keys(ports)) await models.forget(vm);
  await assert.rejects(once(ask(ports.one), 'response'), { code: 'ECONNREFUSED' });
});

test('a VM that is served elsewhere loses its key and its requests', async (t) => {
  const held: ServerResponse[] = [];
  const provider = await startProvider(t, (_request, response) => void held.push(response));
  const [port, next] = [await freePort(), await freePort()];
  await models.serve('vm', { address: '127.0.0.1', port });
  await models.setAccess('vm', accessTo(provider));
  const waiting = once(ask(port), 'response');
  await until('the request', async () => (held.length === 1 ? true : null));
  await Promise.all([
    assert.rejects(waiting, { code: 'ECONNRESET' }),
    models.forget('vm'),
    models.serve('vm', { address: '127.0.0.1', port: next }),
  ]);
  await assert.rejects(once(ask(port), 'response'), { code: 'ECONNREFUSED' });
  const unknown = ask(next);
  await once(unknown, 'finish');
  assert.equal(held.length, 1, 'it waits for its key');
  unknown.destroy();
  await models.forget('vm');
});

async function childOf(pid: number): Promise<number> {
  return Number((await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8')).trim().split(' ')[0]);
}
