// What the control plane is told by its environment.
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { readDatabaseConfig, readServeConfig } from '../src/config.ts';

let folder: string;
let enough: Record<string, string>;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'berth-config-'));
  await writeFile(join(folder, 'token'), 'secret\n');
  await writeFile(join(folder, 'empty'), '\n');
  enough = { BERTH_DATABASE_URL: 'postgres://x', BERTH_HOST_URL: 'unix:/run/host.sock', BERTH_HOST_TOKEN_FILE: join(folder, 'token') };
});
after(() => rm(folder, { recursive: true }));

test('what is not given has a default', () => {
  assert.deepEqual(readServeConfig(enough), {
    databaseUrl: 'postgres://x',
    logLevel: 'info',
    listenAddress: '127.0.0.1',
    port: 4_800,
    databaseConnections: 20,
    hostUrl: 'unix:/run/host.sock',
    hostToken: 'secret',
    crashAt: null,
  });
});

test('DATABASE_URL stands in for BERTH_DATABASE_URL, which wins; an empty variable is none', () => {
  assert.equal(readDatabaseConfig({ DATABASE_URL: 'postgres://y', BERTH_DATABASE_URL: '' }).databaseUrl, 'postgres://y');
  assert.equal(readDatabaseConfig({ DATABASE_URL: 'postgres://y', BERTH_DATABASE_URL: 'postgres://x' }).databaseUrl, 'postgres://x');
});

for (const [variable, value] of Object.entries({
  BERTH_DATABASE_URL: 'mysql://x',
  BERTH_PORT: 'http',
  BERTH_HOST_URL: 'host:80',
  BERTH_LOG_LEVEL: 'loud',
  BERTH_DATABASE_CONNECTIONS: '0',
})) {
  test(`a wrong ${variable} is refused by name`, () => {
    assert.throws(() => readServeConfig({ ...enough, [variable]: value }), new RegExp(variable));
  });
}

test('an empty token file is refused by name', () => {
  assert.throws(() => readServeConfig({ ...enough, BERTH_HOST_TOKEN_FILE: join(folder, 'empty') }), /BERTH_HOST_TOKEN_FILE/);
});
