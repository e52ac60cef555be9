// sdk/README.md: names every public method of the SDK, and its longer samples run.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { connect, type AddressInfo, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { createSandboxBody } from '@berth/contract/sandboxes/sandboxes.ts';
import * as sdk from '../../src/index.ts';
import { SandboxCommand, SandboxTerminal } from '../../src/streams/program.ts';
import { SandboxTunnel } from '../../src/streams/tunnel.ts';
import { TestServer } from '../../src/testing/index.ts';
import { realWorld } from '../worlds.ts';

const README = readFileSync(new URL('../../README.md', import.meta.url), 'utf8');

/** Name of an object of each class in the README. */
const CLASSES: readonly (readonly [string, { prototype: object }])[] = [
  ['berth', sdk.Berth],
  ['berth.activity', sdk.Activity],
  ['berth.agents', sdk.Agents],
  ['berth.hosts', sdk.Hosts],
  ['berth.keys', sdk.ApiKeys],
  ['berth.projects', sdk.Projects],
  ['berth.sandboxes', sdk.Sandboxes],
  ['berth.usage', sdk.Usage],
  ['sandbox', sdk.Sandbox],
  ['sandbox', sdk.SandboxStreams],
  ['sandbox.agents', sdk.SandboxAgents],
  ['sandbox.files', sdk.SandboxFiles],
  ['sandbox.previews', sdk.SandboxPreviews],
  ['sandbox.processes', sdk.SandboxProcesses],
  ['sandbox.variables', sdk.SandboxVariables],
  ['session', sdk.AgentSession],
  ['turn', sdk.AgentTurn],
  ['process', sdk.SandboxProcess],
  ['command', SandboxCommand],
  ['terminal', SandboxTerminal],
  ['tunnel', SandboxTunnel],
];

/** Public methods and accessors of a class and those that it inherits. */
function membersOf(prototype: object): string[] {
  const above = Object.getPrototypeOf(prototype) as object;
  const own = Object.getOwnPropertyNames(prototype).filter((name) => name !== 'constructor');
  return above === Object.prototype ? own : [...own, ...membersOf(above)];
}

/** Members that code names. In a row of a table, `.name` continues the name before it. */
function namedIn(readme: string): Set<string> {
  const named = new Set<string>();
  for (const line of readme.split('\n')) {
    let before = '';
    for (const [, object = before, member] of line.matchAll(/(?:\b([a-z]\w*(?:\.[a-z]\w*)*)|`)\.([a-z]\w*)/g)) {
      before = object;
      named.add(`${object}.${member}`);
    }
  }
  return named;
}

test('the README names every public method of the SDK', () => {
  const named = namedIn(README);
  const missing = CLASSES.flatMap(([object, { prototype }]) =>
    membersOf(prototype).map((member) => `${object}.${member}`),
  ).filter((member) => !named.has(member));
  assert.deepEqual(missing, []);
});

test('calls in the tables of the README exist', () => {
  const members = new Map<string, Set<string>>();
  for (const [object, { prototype }] of CLASSES)
    members.set(object, new Set([...(members.get(object) ?? []), ...membersOf(prototype)]));
  const calls = README.split('\n')
    .filter((line) => line.startsWith('| `'))
    .flatMap((line) => [...namedIn(line.split(' | ', 1)[0] ?? '')])
    .map((call) => call.split(/\.(?=[^.]*$)/) as [string, string])
    .filter(([object]) => members.has(object));
  assert.ok(calls.length > 60, `${calls.length} calls were found`);
  // Properties of an instance.
  const fields = new Set(['berth.raw', 'process.exited']);
  const unknown = calls.filter(
    ([object, member]) => members.get(object)?.has(member) !== true && !fields.has(`${object}.${member}`),
  );
  assert.deepEqual(unknown, []);
});

test('the README lists every field of a create', () => {
  const [, section = ''] = /^### Fields of a sandbox\n([^]*?)^## /m.exec(README) ?? [];
  const cells = section.split('\n').map((line) => line.split(' | ', 1)[0] ?? '');
  const listed = cells.flatMap((cell) => [...cell.matchAll(/`(\w+)`/g)].map(([, name = '']) => name));
  const fields = Object.keys(createSandboxBody.shape).filter((name) => name !== 'getOrCreate');
  assert.deepEqual(listed.slice(1).toSorted(), fields.toSorted());
});

/**
 * Runs the sample that has a text, as a module. @param replace words of the sample, and others in
 * their place @param result expression whose value is returned
 */
async function runSample(
  part: string,
  sandbox: sdk.Sandbox,
  replace: Readonly<Record<string, string>>,
  result = 'undefined',
): Promise<unknown> {
  let code = [...README.matchAll(/^```js\n([^]*?)^```$/gm)]
    .map(([, block = '']) => block)
    .find((one) => one.includes(part));
  assert.ok(code !== undefined, part);
  for (const [word, other] of Object.entries(replace)) {
    assert.ok(code.includes(word), word);
    code = code.replace(word, () => other);
  }
  Object.assign(globalThis, { sandboxOfSample: sandbox });
  const module = `const sandbox = globalThis.sandboxOfSample;\n${code}\nexport const result = ${result};`;
  return ((await import(`data:text/javascript,${encodeURIComponent(module)}`)) as { result: unknown }).result;
}

test('the sample of a forward carries both directions, and closes a refused connection', async (t) => {
  const world = await realWorld();
  t.after(() => world.close());
  const sandbox = await world.client().sandboxes.create();
  const server = (await runSample('createServer', sandbox, { '15432': '0' }, 'forward')) as Server;
  t.after(() => server.close());
  if (!server.listening) await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const echoed = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
  echoed.end('there and back');
  assert.equal(await text(echoed), 'there and back');

  const errors = t.mock.method(console, 'error', () => undefined);
  await sandbox.sleep();
  const refused = connect(port, '127.0.0.1');
  assert.equal(await text(refused), '');
  assert.equal(errors.mock.calls[0]?.arguments[0], 'sandbox_state_conflict');
});

test('the sample of a large upload sends a file and closes it', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'berth-readme-'));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const path = join(folder, 'model.bin');
  await writeFile(path, 'the model');
  const sandbox = await new TestServer().client().sandboxes.create();
  t.mock.method(console, 'log', () => undefined);
  const fd = await runSample('uploadResumable', sandbox, { "'model.bin'": JSON.stringify(path) }, 'file.fd');
  assert.equal(await sandbox.files.read('models/model.bin'), 'the model');
  assert.equal(fd, -1, 'the file is closed');
});
