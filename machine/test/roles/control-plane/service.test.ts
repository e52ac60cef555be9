import assert from 'node:assert/strict';
import { test } from 'node:test';
import { instancePaths } from '../../../src/supervisor/instance.ts';
import { readConfig } from '../../../src/config/config.ts';
import { apiUrl, databaseAsSeen, previewUrl, publicUrl, withPlans } from '../../../src/roles/control-plane/service.ts';

const PATHS = instancePaths('/data');

test('the API reaches the embedded database by its mounted socket folder', () => {
  assert.deepEqual(databaseAsSeen(null, PATHS), {
    databaseUrl: 'postgresql://berth@localhost:5432/berth?host=%2Fdatabase',
    socketFolder: '/data/postgres/socket',
  });
});

test('an external database server is reached over TCP as given or by its mounted socket folder', () => {
  const tcp = 'postgresql://ada:secret@db.example:5433/berth?sslmode=require';
  assert.deepEqual(databaseAsSeen(tcp, PATHS), { databaseUrl: tcp, socketFolder: null });
  assert.deepEqual(databaseAsSeen('postgresql://ada@localhost/berth?host=/run/postgresql', PATHS), {
    databaseUrl: 'postgresql://ada@localhost/berth?host=%2Fdatabase',
    socketFolder: '/run/postgresql',
  });
});

test('a local client reaches an API that listens on every address', () => {
  assert.equal(apiUrl({ listen: '0.0.0.0', port: 4800 }), 'http://127.0.0.1:4800');
  assert.equal(apiUrl({ listen: '::', port: 4800 }), 'http://[::1]:4800');
  assert.equal(apiUrl({ listen: '10.0.0.5', port: 80 }), 'http://10.0.0.5:80');
});

test('the public URL is the configured one, else that of a local client', () => {
  const config = { listen: '0.0.0.0', port: 4800 };
  assert.equal(publicUrl(config, { BERTH_PUBLIC_URL: 'https://Berth.example.test/' }), 'https://berth.example.test');
  for (const environment of [{}, { BERTH_PUBLIC_URL: '' }])
    assert.equal(publicUrl(config, environment), 'http://127.0.0.1:4800');
});

test('previews use the configured host, else one below localhost with the public port', () => {
  const config = { listen: '0.0.0.0', port: 4800 };
  const read = (environment: Readonly<NodeJS.ProcessEnv>): string => previewUrl(config, environment);
  assert.equal(read({ BERTH_PREVIEW_URL: 'https://Previews.example.test/' }), 'https://previews.example.test');
  for (const environment of [{}, { BERTH_PREVIEW_URL: '' }]) assert.equal(read(environment), 'http://localhost:4800');
  assert.equal(read({ BERTH_PUBLIC_URL: 'http://10.0.0.5:8080' }), 'http://localhost:8080');
  assert.equal(read({ BERTH_PUBLIC_URL: 'https://berth.example.test' }), 'http://localhost:4800');
  assert.equal(previewUrl({ listen: '127.0.0.1', port: 80 }, {}), 'http://localhost');
});

test('the API sees the copy of the plan catalogue at its path, if there is one', () => {
  const api = {
    user: { name: 'u', uid: 1, gid: 1 },
    binds: [],
    command: ['node'] as [string],
    environment: { A: 'b' },
    workingFolder: '/app',
  };
  const configured = (plansFile?: string) =>
    readConfig(plansFile === undefined ? {} : { plansFile }, { BERTH_CALLER_UID: '0' });
  assert.deepEqual(withPlans({ config: configured(), paths: PATHS }, api), api);
  const seen = withPlans({ config: configured('/root/plans.json'), paths: PATHS }, api);
  assert.deepEqual(seen.binds, [{ from: '/data/run/plans.json', to: '/plans.json' }]);
  assert.deepEqual(seen.environment, { A: 'b', BERTH_PLANS_FILE: '/plans.json' });
});
