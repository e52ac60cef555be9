import assert from 'node:assert/strict';
import { resolve } from 'node:path';
import { test } from 'node:test';
import { readConfig } from '../../src/config/config.ts';
import { OperatorFailure } from '../../src/output/failure.ts';

const ROOT = { BERTH_CALLER_UID: '0', BERTH_CALLER_HOME: '/root' };
const USER = { BERTH_CALLER_UID: '1000', BERTH_CALLER_HOME: '/home/ada' };

test('without flags and variables root gets system folders, a user gets folders below the home', () => {
  const root = readConfig({}, ROOT);
  assert.equal(root.dataFolder, '/var/lib/berth');
  assert.equal(root.cacheFolder, '/var/cache/berth');
  const user = readConfig({}, USER);
  assert.equal(user.dataFolder, '/home/ada/.local/state/berth');
  assert.equal(user.cacheFolder, '/home/ada/.cache/berth');
  assert.equal(readConfig({}, { ...USER, XDG_STATE_HOME: '/state' }).dataFolder, '/state/berth');
  const { dataFolder: _data, cacheFolder: _cache, ...rest } = root;
  assert.deepEqual(rest, {
    listen: '127.0.0.1',
    port: 4800,
    databaseUrl: null,
    guestCidr: '10.200.0.0/16',
    cpuOvercommit: 8,
    memoryReserveMib: 2048,
    plansFile: null,
    agents: ['agent_one', 'agent_two'],
    driver: 'qemu',
  });
});

test('a flag wins over its variable, a variable over the default; an empty variable is unset', () => {
  const environment = {
    ...ROOT,
    BERTH_PORT: '5000',
    BERTH_DATA_DIR: '/data',
    DATABASE_URL: 'postgres://other/db',
    BERTH_LISTEN: '',
  };
  assert.equal(readConfig({}, environment).port, 5000);
  assert.equal(readConfig({ port: '6000' }, environment).port, 6000);
  assert.equal(readConfig({}, environment).dataFolder, '/data');
  assert.equal(readConfig({ dataDir: '/flag' }, environment).dataFolder, '/flag');
  assert.equal(readConfig({}, environment).databaseUrl, 'postgres://other/db');
  assert.equal(
    readConfig({}, { ...environment, BERTH_DATABASE_URL: 'postgresql://own/db' }).databaseUrl,
    'postgresql://own/db',
  );
  assert.equal(readConfig({}, environment).listen, '127.0.0.1');
  assert.equal(
    readConfig({}, { ...environment, BERTH_PLANS_FILE: '/etc/berth/plans.json' }).plansFile,
    '/etc/berth/plans.json',
  );
  assert.equal(readConfig({ plansFile: 'plans.json' }, environment).plansFile, resolve('plans.json'));
});

test('agents of the image are those named, each once, or none', () => {
  const agents = (text: string) => readConfig({}, { ...ROOT, BERTH_AGENTS: text }).agents;
  assert.deepEqual(agents('agent_two, agent_two'), ['agent_two']);
  assert.deepEqual(agents('agent_two,agent_one'), ['agent_one', 'agent_two']);
  assert.deepEqual(agents('none'), []);
  assert.deepEqual(agents(''), ['agent_one', 'agent_two']);
});

const WRONG: [string, Parameters<typeof readConfig>[0], Record<string, string>, RegExp][] = [
  ['a port above 65535', { port: '65536' }, {}, /^--port: '65536' is not a port, 1 to 65535$/],
  ['an unknown agent', {}, { BERTH_AGENTS: 'codex' }, /^BERTH_AGENTS: 'codex' is not 'none', or a list of agent_one/],
  ['agents with none', { agents: 'none,agent_one' }, {}, /^--agents: 'none,agent_one' is not/],
  ['port 0', { port: '0' }, {}, /^--port: '0'/],
  ['a port that is no number', {}, { BERTH_PORT: 'http' }, /^BERTH_PORT: 'http'/],
  ['a name for an address', { listen: 'localhost' }, {}, /^--listen: 'localhost' is not an IP address/],
  [
    'a database that is no PostgreSQL',
    {},
    { DATABASE_URL: 'mysql://x/y' },
    /^DATABASE_URL: its value is not a postgresql:\/\/ URL$/,
  ],
  [
    'a guest network that is too small',
    { guestCidr: '10.1.2.0/25' },
    {},
    /^--guest-cidr: '10.1.2.0\/25' is not an IPv4 network/,
  ],
  ['an overcommit below 1', { cpuOvercommit: '0.5' }, {}, /^--cpu-overcommit: '0.5'/],
  ['a negative reserve', {}, { BERTH_MEMORY_RESERVE_MIB: '-1' }, /^BERTH_MEMORY_RESERVE_MIB: '-1'/],
  ['an empty plans file', { plansFile: '' }, {}, /^--plans-file: '' is not the path of a file$/],
  ['an unknown driver', { driver: 'xen' }, {}, /^--driver: 'xen' is not qemu or fake$/],
  ['an empty data folder', { dataDir: '' }, {}, /^--data-dir: the path is empty$/],
];

for (const [what, flags, environment, message] of WRONG) {
  test(`${what} is refused with the name of the flag or variable`, () => {
    assert.throws(
      () => readConfig(flags, { ...ROOT, ...environment }),
      (error) => error instanceof OperatorFailure && message.test(error.message),
    );
  });
}
