// Runs inside the lab machine: verifies the records of the load before the last power cut, then
// continues the load until the next one.
//   node load.ts load|verify DRIVER
import assert from 'node:assert/strict';
import { readFileSync, writeSync } from 'node:fs';
import { BerthError, type Berth, type Sandbox } from '@berth/sdk';
import { RECORD_MARK, type LoadRecord, type Order } from '../order.ts';
import { clientOf, createKey, install, withJournal } from './service.ts';

const WORKERS = 3;
const STDOUT = 1;

/** Returns when the record has left the machine. */
function record(line: LoadRecord): void {
  writeSync(STDOUT, `${RECORD_MARK}${JSON.stringify(line)}\n`);
}

const pathOf = (number: number): string => `file-${number}`;

/** Checks a sandbox against its records; returns it awake, or null if it is gone. */
async function verify(berth: Berth, id: string, records: readonly LoadRecord[]): Promise<Sandbox | null> {
  const phases = records.flatMap((each) => ('phase' in each && each.id === id ? [each] : []));
  const last = phases.at(-1);
  const sandbox = await berth.sandboxes.get(id).catch((error: unknown) => {
    if (error instanceof BerthError && error.code === 'sandbox_not_found') return null;
    throw error;
  });
  if (last?.op === 'destroy') {
    const { status } = sandbox?.data ?? { status: 'deleted' };
    if (last.phase === 'ok') assert.equal(status, 'deleted', `${id}: its destroy was acknowledged`);
    return null;
  }
  assert.ok(sandbox !== null, `${id}: its create was acknowledged`);
  await sandbox.waitUntil(({ status }) => ['ready', 'stopped', 'failed', 'deleted'].includes(status));
  if (last?.op === 'sleep' && last.phase === 'ok') assert.equal(sandbox.data.status, 'stopped', id);
  assert.notEqual(sandbox.data.status, 'deleted', id);
  if (sandbox.data.status !== 'ready') await sandbox.wake();
  const numbers = records.flatMap((each) => (each.op === 'write' && each.id === id ? [each.number] : []));
  const { stdout } = await sandbox.exec(`cat ${['/dev/null', ...numbers.map(pathOf)].join(' ')}`).orThrow();
  assert.deepEqual(stdout.trim().split('\n').filter(Boolean).map(Number), numbers, `${id}: its flushed files`);
  return sandbox;
}

/** Calls until the power is cut. */
async function load(berth: Berth, given: Sandbox | undefined, from: number): Promise<never> {
  let sandbox = given;
  for (let number = from; ; number += 1) {
    if (sandbox === undefined) {
      sandbox = await berth.sandboxes.create({ agent: 'agent_one' });
      record({ op: 'create', id: sandbox.id });
    }
    const { id } = sandbox;
    const path = pathOf(number);
    await sandbox.exec(`echo ${number} > ${path} && sync ${path} .`).orThrow();
    record({ op: 'write', id, number });
    const chance = Math.random();
    if (chance < 0.2) {
      await recorded(id, 'destroy', () => berth.sandboxes.get(id).then((each) => each.destroy()));
      sandbox = undefined;
    } else if (chance < 0.5) {
      const asleep = sandbox;
      await recorded(id, 'sleep', () => asleep.sleep());
      await recorded(id, 'wake', () => asleep.wake());
    }
  }
}

async function recorded(id: string, op: 'sleep' | 'wake' | 'destroy', call: () => Promise<unknown>): Promise<void> {
  record({ op, id, phase: 'try' });
  await call();
  record({ op, id, phase: 'ok' });
}

async function keyOf(records: readonly LoadRecord[], driver: string): Promise<string> {
  for (const each of records) if (each.op === 'key') return each.key;
  install(driver);
  const key = createKey();
  record({ op: 'key', key });
  return key;
}

const [, , mode = '', driver = 'qemu'] = process.argv;
await withJournal(async () => {
  const { records = [] } = JSON.parse(readFileSync(process.env['LAB_ORDER'] ?? '', 'utf8')) as Order;
  const berth = await clientOf(await keyOf(records, driver));
  const ids = records.flatMap((each) => (each.op === 'create' ? [each.id] : []));
  const verified = await Promise.all(ids.map((id) => verify(berth, id, records)));
  const sandboxes = verified.filter((sandbox) => sandbox !== null);
  console.log(`verified ${records.length} records of ${ids.length} sandboxes, ${sandboxes.length} of them left`);
  if (mode !== 'load') return;
  const from = Math.max(0, ...records.map((each) => (each.op === 'write' ? each.number : 0))) + 1;
  const workers = Array.from({ length: WORKERS }, (_, at) => load(berth, sandboxes[at], from + at * 1_000_000));
  await Promise.all(workers);
});
