// `berth files watch` against the SDK's test server.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Sandbox } from '@berth/sdk';
import { TestService } from '../world/test-service.ts';
import { untilTrue } from '../../../os/test/until.ts';

let service: TestService;
let sandbox: Sandbox;
before(async () => {
  service = await TestService.start();
});
after(() => service.close());

type Watch = ReturnType<TestService['start']>;

async function watching(...args: string[]): Promise<Watch> {
  sandbox = await service.sandbox();
  await sandbox.files.write('src/sub/old', '');
  const watch = service.start(['files', 'watch', ...args.map((word) => (word === 'SBX' ? sandbox.id : word))]);
  await untilTrue('the watch has begun', () => watch.seen.stdout.includes('reset'));
  return watch;
}

async function end({ child, ended }: Watch): Promise<[number | null, string, string]> {
  child.kill('SIGINT');
  const { code, stdout, stderr } = await ended;
  return [code, stdout, stderr];
}

const lines = (watch: Watch, count: number): Promise<void> =>
  untilTrue(`${count} lines`, () => watch.seen.stdout.split('\n').length > count);

test('changes are printed as they happen, without control characters, until Ctrl-C', async () => {
  const watch = await watching('-r', 'SBX', 'src');
  const { files } = sandbox;
  await files.write('elsewhere', '');
  await files.write('src/sub/\u001b[1mnew', '');
  await files.chmod('src/sub/old', '600');
  await files.move('src/sub', 'src/moved');
  await lines(watch, 7);
  assert.deepEqual(await end(watch), [
    130,
    [
      'reset   /code/src/',
      String.raw`created /code/src/sub/\u001b[1mnew`,
      'changed /code/src/sub/old',
      'removed /code/src/sub/',
      'created /code/src/moved/',
      'created /code/src/moved/old',
      String.raw`created /code/src/moved/\u001b[1mnew`,
      '',
    ].join('\n'),
    '',
  ]);
});

test('--json prints a line of JSON for each change; without -r folders below are left out', async () => {
  const watch = await watching('--json', 'SBX', 'src');
  await sandbox.files.write('src/sub/new', '');
  await sandbox.files.delete('src/sub', { recursive: true });
  await lines(watch, 2);
  const [code, stdout, stderr] = await end(watch);
  assert.deepEqual([code, stderr], [130, '']);
  assert.deepEqual(
    stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as unknown),
    [
      { path: '/code/src', change: 'reset', kind: 'directory' },
      { path: '/code/src/sub', change: 'removed', kind: 'directory' },
    ],
  );
});

test('a watch survives an outage and a sleep, with a note each, and ends when its folder is gone', async () => {
  const watch = await watching('SBX', 'src');
  const { port } = service;
  await service.pause();
  await untilTrue('a note', () => watch.seen.stderr.includes('retrying'));
  await service.listen(port);
  await sandbox.files.write('src/a', '');
  await lines(watch, 2);
  await sandbox.sleep();
  await untilTrue('a note', () => watch.seen.stderr.includes('not awake'));
  await sandbox.wake();
  await sandbox.files.write('src/b', '');
  await lines(watch, 3);
  await sandbox.files.delete('src', { recursive: true });
  const { code, stdout, stderr } = await watch.ended;
  assert.deepEqual([code, stdout], [1, 'reset   /code/src/\ncreated /code/src/a\ncreated /code/src/b\n']);
  assert.match(stderr, new RegExp(`the watch continues after berth sandbox wake ${sandbox.id}`));
  assert.match(stderr, /the service responds again/);
  assert.match(stderr, /the sandbox is awake/);
  assert.match(stderr, /nothing at \/code\/src/);
});

test('a folder that is not there is an error of one line', async () => {
  sandbox = await service.sandbox();
  const { code, stdout, stderr } = await service.run(['files', 'watch', sandbox.id, 'none']);
  assert.deepEqual([code, stdout], [1, '']);
  assert.match(stderr, /nothing at \/code\/none/);
});
