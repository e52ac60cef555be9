import assert from 'node:assert/strict';
import { mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { readConfig, settingsOf } from '../../src/config/config.ts';
import { readSettings, serviceSettings, writeSettings } from '../../src/systemd/settings.ts';

let folder: string;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'berth-settings-'));
});
after(() => rm(folder, { recursive: true }));

test('settings are read as they were written, from a file that only root can read', async () => {
  const file = join(folder, 'made/berth.env');
  const settings = { BERTH_PUBLIC_URL: 'https://a.example', DATABASE_URL: String.raw`postgres://u:p"$\`'w@h/d e` };
  await writeSettings(file, settings);
  assert.deepEqual(await readSettings(file), settings);
  assert.equal((await stat(file)).mode & 0o777, 0o600);
});

test('a file edited by an operator is read; a missing one is empty', async () => {
  const file = join(folder, 'edited.env');
  await writeFile(file, `# comment\nBERTH_PORT=4900 \n BERTH_LISTEN='0.0.0.0'\n\nBERTH_AGENTS="none"\n`);
  assert.deepEqual(await readSettings(file), { BERTH_PORT: '4900', BERTH_LISTEN: '0.0.0.0', BERTH_AGENTS: 'none' });
  assert.deepEqual(await readSettings(join(folder, 'missing')), {});
});

test('a value with a control character is refused by the name of its variable', async () => {
  const refused = writeSettings(join(folder, 'refused.env'), { BERTH_GIT_ALLOW_URLS: 'a\nb' });
  await assert.rejects(refused, /^OperatorFailure: cannot store BERTH_GIT_ALLOW_URLS: it has a control character$/);
});

test('the service gets its variables, none of a client of the API, and no empty one', () => {
  const environment = { BERTH_PORT: '1', BERTH_API_KEY: 'brt_x', BERTH_LISTEN: '', PATH: '/bin', https_proxy: 'p' };
  assert.deepEqual(serviceSettings(environment), { BERTH_PORT: '1', https_proxy: 'p' });
});

test('flags become variables, with absolute paths', () => {
  const flags = { port: '4900', plansFile: 'plans.json', dataDir: 'data' };
  const config = readConfig(flags, { BERTH_CACHE_DIR: '/cache' });
  assert.deepEqual(settingsOf(flags, config), {
    BERTH_PORT: '4900',
    BERTH_PLANS_FILE: join(process.cwd(), 'plans.json'),
    BERTH_DATA_DIR: join(process.cwd(), 'data'),
    BERTH_CACHE_DIR: '/cache',
  });
});
