// Runs inside the lab machine: the service before and after a reboot.
//   node installed.ts before|after DRIVER
import assert from 'node:assert/strict';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { clientOf, createKey, install, run, withJournal } from './service.ts';

const STEP_MS = 1_000;
const STATE = '/srv/lab-installed.json';
const UNIT = '/etc/systemd/system/berth.service';

interface State {
  key: string;
  awake: string;
  asleep: string;
  pid: string;
  bootId: string;
}

const bootId = (): string => readFileSync('/proc/sys/kernel/random/boot_id', 'utf8');
const show = (property: string): string => run('systemctl', 'show', `--property=${property}`, '--value', 'berth');
const mainPid = (): string => show('MainPID');

async function before(driver: string): Promise<void> {
  install(driver);
  const first = mainPid();
  install(driver);
  assert.equal(mainPid(), first, 'a repeated install leaves the running service alone');
  const key = createKey();
  const berth = await clientOf(key);
  const awake = await berth.sandboxes.create({ agent: 'agent_one' });
  const asleep = await berth.sandboxes.create({ agent: 'agent_one' });
  for (const sandbox of [awake, asleep]) await sandbox.exec(`echo ${sandbox.id} > kept && sync`).orThrow();
  const started = await awake.exec('nohup sleep infinity > /dev/null 2>&1 & echo $!').orThrow();
  const pid = started.stdout.trim();
  await asleep.sleep();

  run('systemctl', 'restart', 'berth');
  assert.notEqual(mainPid(), first);
  const client = await clientOf(key);
  await (await client.sandboxes.get(awake.id)).exec(`kill -0 ${pid}`).orThrow();
  console.log('a restart of the service kept the process in the sandbox');
  run('systemctl', 'kill', '--kill-whom=main', '--signal=KILL', 'berth');
  while (show('NRestarts') === '0' || show('ActiveState') !== 'active') await delay(STEP_MS);
  await (await (await clientOf(key)).sandboxes.get(awake.id)).exec(`kill -0 ${pid}`).orThrow();
  console.log('a kill of the service kept the process in the sandbox');
  assert.doesNotMatch(run('journalctl', '--unit=berth', '--no-pager'), /brt_\w{20}|token=/);

  const state: State = { key, awake: awake.id, asleep: asleep.id, pid, bootId: bootId() };
  writeFileSync(STATE, JSON.stringify(state), { flush: true });
  // After this check has reported its result.
  const reboot = 'while systemctl is-active --quiet lab-check; do sleep 1; done; systemctl reboot';
  run('systemd-run', '--unit=lab-reboot', 'sh', '-c', reboot);
}

async function after(driver: string): Promise<void> {
  const state = JSON.parse(readFileSync(STATE, 'utf8')) as State;
  assert.notEqual(bootId(), state.bootId);
  const berth = await clientOf(state.key);
  const asleep = await berth.sandboxes.get(state.asleep);
  assert.equal(asleep.data.status, 'stopped');
  const awake = await berth.sandboxes.get(state.awake);
  await awake.waitUntil('ready');
  assert.equal((await awake.exec('cat kept').orThrow()).stdout.trim(), awake.id);
  // The fake driver stops processes, which a reboot ends.
  if (driver !== 'fake') await awake.exec(`kill -0 ${state.pid}`).orThrow();
  console.log('after the reboot the sandboxes are as they were');
  await asleep.wake();
  assert.equal((await asleep.exec('cat kept').orThrow()).stdout.trim(), asleep.id);

  console.log(run('./berth', 'uninstall'));
  for (const file of [UNIT, '/etc/berth']) assert.equal(existsSync(file), false, file);
  assert.ok(existsSync('/var/lib/berth/host'));
  const left = '(berth|app)/(host|api|cli)/src|qemu-system|postgres';
  assert.equal(run('sh', '-c', `pgrep -af '${left}' | grep -v pgrep || true`), '');
  assert.equal(run('ip', 'netns', 'list'), '');
  console.log('an uninstall left the data alone');
}

const [, , phase = '', driver = 'qemu'] = process.argv;
await withJournal(() => (phase === 'before' ? before(driver) : after(driver)));
