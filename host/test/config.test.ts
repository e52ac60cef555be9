import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, it } from 'node:test';
import { readConfig } from '../src/config.ts';

const BOUNDED = [
  ...['BERTH_CPU_OVERCOMMIT', 'BERTH_MEMORY_OVERCOMMIT', 'BERTH_MEMORY_RESERVE_MIB', 'BERTH_VM_OVERHEAD_MIB'],
  ...['BERTH_DISK_OVERCOMMIT', 'BERTH_DISK_RESERVE_GIB', 'BERTH_POOL_MIN', 'BERTH_POOL_MAX'],
  ...['BERTH_CREATE_DEADLINE_SECONDS', 'BERTH_STREAMS_PER_VM', 'BERTH_STREAMS'],
  ...['BERTH_STREAM_IDLE_SECONDS', 'BERTH_STREAM_LONGEST_SECONDS'],
  ...['BERTH_VM_DISK_MIB', 'BERTH_VM_DISK_REQUESTS', 'BERTH_VM_NETWORK_MBIT'],
];

/** The bounds in the refusal of a word; undefined for a variable that is no number of the host. */
function boundsOf(variable: string): string | undefined {
  try {
    readConfig([], { [variable]: 'many' });
    return undefined;
  } catch (error) {
    return /'many' is not a number from (.*)$/.exec((error as Error).message)?.[1];
  }
}

describe('the configuration of the host daemon', () => {
  it('has defaults for everything under the data folder', () => {
    const config = readConfig(['--data-dir', '/data'], {});
    assert.equal(config.driver, 'qemu');
    assert.deepEqual(config.listenOn, { socket: '/data/run/host.sock', uid: null, gid: null });
    assert.equal(config.tokenFile, '/data/secrets/host-token');
    assert.deepEqual(config.policy, {
      cpuOvercommit: 8,
      memoryOvercommit: 1,
      memoryReserveMib: 2_048,
      vmOverheadMib: 128,
      diskOvercommit: 4,
      diskReserveGib: 5,
    });
    assert.equal(config.encryptDisks, false);
    assert.equal(config.gateway, true);
    assert.equal(config.modelCaFile, null);
    assert.equal(config.guestCidr, '10.200.0.0/16');
    assert.deepEqual(config.pool, { min: 1, max: 8 });
    assert.deepEqual(config.streams, { perVm: 256, perHost: 2_048, idleMs: 3_600_000, longestMs: 86_400_000 });
  });

  it('lets a flag win over its variable, and a variable over the default', () => {
    const environment = { BERTH_DATA_DIR: '/from-variable', BERTH_CPU_OVERCOMMIT: '2', BERTH_MEMORY_RESERVE_MIB: '0' };
    const config = readConfig(['--cpu-overcommit', '3'], environment);
    assert.deepEqual(
      [config.dataFolder, config.policy.cpuOvercommit, config.policy.memoryReserveMib],
      ['/from-variable', 3, 0],
    );
  });

  it('makes the path of the model authorities absolute', () => {
    const { modelCaFile } = readConfig([], { BERTH_MODEL_CA_FILE: '../ca.pem' });
    assert.equal(modelCaFile, resolve('../ca.pem'));
  });

  it('accepts an address to listen on', () => {
    assert.deepEqual(readConfig(['--listen', '127.0.0.1:4801'], {}).listenOn, { address: '127.0.0.1', port: 4_801 });
    assert.deepEqual(readConfig(['--listen', '[::1]:0'], {}).listenOn, { address: '::1', port: 0 });
  });

  it('accepts an address of the network only with consent to plain http', () => {
    for (const listen of ['0.0.0.0:4801', '10.0.0.5:4801', '[::]:4801', 'host-1.example.test:4801', '127.example:1']) {
      assert.throws(
        () => readConfig(['--listen', listen], {}),
        /is plain http beyond this machine.*BERTH_HOST_PLAINTEXT/,
      );
      assert.ok('address' in readConfig(['--listen', listen], { BERTH_HOST_PLAINTEXT: '1' }).listenOn);
    }
  });

  it('has bounds for each number, which docs/operations.md names', () => {
    const operations = readFileSync(join(import.meta.dirname, '../../docs/operations.md'), 'utf8');
    const bounded: string[] = [];
    for (const row of operations.split('\n').filter((line) => line.startsWith('|'))) {
      for (const [, variable = ''] of (/^\|(?: `--[a-z-]+` \|)?[^|]*/.exec(row)?.[0] ?? '').matchAll(
        /`(BERTH_\w+)`/g,
      )) {
        const bounds = boundsOf(variable);
        // The ids of the socket's owner are those of the system.
        if (bounds === undefined || /_[UG]ID$/.test(variable)) continue;
        bounded.push(variable);
        assert.match(row.replaceAll(/(\d),(?=\d{3})/g, '$1'), new RegExp(`(?<![\\d.])${bounds}\\b`));
      }
    }
    assert.deepEqual(bounded.toSorted(), BOUNDED.toSorted());
  });

  for (const [argv, message] of [
    [['--driver', 'kvm'], /--driver \(BERTH_DRIVER\): 'kvm' must be qemu or fake/],
    [['--cpu-overcommit', 'many'], /--cpu-overcommit \(BERTH_CPU_OVERCOMMIT\): 'many' is not a number/],
    [['--memory-reserve-mib', '-1'], /--memory-reserve-mib/],
    [
      ['--memory-overcommit', '0'],
      /--memory-overcommit \(BERTH_MEMORY_OVERCOMMIT\): '0' is not a number from 0.1 to 100/,
    ],
    [['--pool-min', '3', '--pool-max', '2'], /--pool-min \(BERTH_POOL_MIN\): 3 exceeds --pool-max/],
    [['--gateway', 'yes'], /--gateway \(BERTH_GATEWAY\): 'yes' must be 0 or 1/],
    [['--encrypt-disks', 'yes'], /--encrypt-disks \(BERTH_ENCRYPT_DISKS\): 'yes' must be 0 or 1/],
    [['--streams-per-vm', '0'], /--streams-per-vm \(BERTH_STREAMS_PER_VM\): '0' is not a number from 1 to 512/],
    [['--stream-idle-seconds', 'never'], /--stream-idle-seconds \(BERTH_STREAM_IDLE_SECONDS\)/],
    [['--listen', '4801'], /'4801' is not ADDRESS:PORT/],
    [['--listen', '127.0.0.1:4801', '--plaintext', 'yes'], /--plaintext \(BERTH_HOST_PLAINTEXT\): 'yes' is not/],
    [['--listen', '127.0.0.1:99999'], /not ADDRESS:PORT/],
    [['--socket', `/${'x'.repeat(120)}`], /at most 107 bytes/],
    [['--socket', 'run/host.sock'], /not an absolute path/],
    [['--no-such-flag', 'x'], /--no-such-flag/],
  ] as const) {
    it(`refuses ${argv.join(' ').slice(0, 40)} with the reason`, () => {
      assert.throws(() => readConfig(argv, {}), message);
    });
  }
});
