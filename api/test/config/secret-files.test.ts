// Sources of the secret key and the host token.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { readServeConfig } from '../../src/config/config.ts';
import { readSecretFiles } from '../../src/config/secret-files.ts';
import { SecretKey } from '../../src/services/context/secret-key.ts';
import { enoughIn } from './enough.ts';

let folder: string;
let enough: Record<string, string>;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'berth-secret-files-'));
  enough = await enoughIn(folder);
});
after(() => rm(folder, { recursive: true }));

test('the first line of the secret key file is the current key, further lines are former ones', async () => {
  const path = join(folder, 'two-keys');
  const [current, former] = [randomBytes(32), randomBytes(48)];
  await writeFile(path, `${current.toString('base64url')}\n\n${former.toString('base64')}\n`);
  const { secretKey } = readServeConfig({ ...enough, BERTH_SECRET_KEY_FILE: path });
  assert.deepEqual(secretKey.ids, new SecretKey(current, former).ids);
});

test('the secret key can be the output of a command, which is fixed while the process serves', async () => {
  const { BERTH_SECRET_KEY_FILE: file, ...without } = enough;
  const read = (line: string) => readServeConfig({ ...without, BERTH_SECRET_KEY_COMMAND: line });
  const { secretKey, secretFiles } = read(`/bin/cat ${file}`);
  assert.deepEqual(secretKey.ids, readServeConfig(enough).secretKey.ids);
  assert.equal(readSecretFiles(secretFiles).secretKey, secretKey);
  assert.throws(
    () => read('/bin/echo not-base64!'),
    /BERTH_SECRET_KEY_COMMAND: its output: secret key 1 is not base64$/,
  );
  assert.throws(() => read('/bin/false'), /BERTH_SECRET_KEY_COMMAND: \/bin\/false failed \(exit code 1, no output\)$/);
  for (const both of [without, { ...enough, BERTH_SECRET_KEY_COMMAND: '/bin/true' }])
    assert.throws(() => readServeConfig(both), /either BERTH_SECRET_KEY_FILE or BERTH_SECRET_KEY_COMMAND$/);
});

test('an unusable secret file is refused with its variable and line, and without its content', async () => {
  const path = join(folder, 'wrong-keys');
  const key = randomBytes(32).toString('base64');
  for (const [content, why] of [
    ['\n', /the file is empty$/],
    [`${key}\nnot base64!`, /secret key 2 is not base64$/],
    [`${key}\n${key}`, /secret 2 of the file repeats an earlier one$/],
    [Array.from({ length: 9 }, () => randomBytes(32).toString('base64')).join('\n'), /has 9 secrets, the limit is 8/],
    [`${key}\n${randomBytes(16).toString('base64')}`, /at least 32 bytes long on one line, not 16$/],
  ] as const) {
    await writeFile(path, content);
    assert.throws(
      () => readServeConfig({ ...enough, BERTH_SECRET_KEY_FILE: path }),
      ({ message }: Error) =>
        message.startsWith(`invalid environment: BERTH_SECRET_KEY_FILE: ${path}: `) &&
        why.test(message) &&
        !message.includes(key),
    );
  }
});
