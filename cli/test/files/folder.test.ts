// `berth files` against a real service with a scripted host.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type FileCall } from '../../../api/test/world/guests/exec-front.ts';
import { ExecRefusal } from '../../../api/test/world/guests/exec-refusal.ts';
import { Service } from '../world/service.ts';

let service: Service;
let id: string;
let calls: FileCall[];
before(async () => {
  service = await Service.start({ durable: false });
  ({ id } = await service.api.makeSandbox('ready'));
  calls = [];
  const { files } = service.api.front;
  service.api.front.files = (call) => {
    calls.push(call);
    if (call.path.endsWith('/missing')) throw new ExecRefusal('file_not_found', 'no');
    if (call.path.endsWith('/link'))
      return { kind: 'link', size: 5, mtimeSeconds: 1, mode: '0777', target: '../\u001b[1m', resolved: null };
    if (call.verb === 'list')
      return Buffer.from('D\0dsrc\0m4096 1 1755\0fa\u001b[1m\0m2048 1 0600\0lto\0m3 1 0777\0ta\u001b\0ET', 'latin1');
    return files(call);
  };
});
after(() => service.close());

test('ls shows kind and size without control characters, and fails for an incomplete listing', async () => {
  const { code, stdout, stderr } = await service.run(['files', 'ls', id, 'src']);
  assert.equal(code, 1);
  assert.match(stdout, /src\/.*directory/);
  assert.match(stdout, /to -> a\S* +link +0777/);
  assert.match(stdout, /file +0600/);
  assert.match(stdout, /2\.0 KiB/);
  assert.equal(stdout.includes('\u001b'), false);
  assert.match(stderr, /incomplete/);
});

test('stat shows a link itself, what it resolves to, and no control characters', async () => {
  const { code, stdout } = await service.run(['files', 'stat', id, 'link']);
  assert.equal(code, 0);
  for (const line of [/^kind +link$/m, /^mode +0777$/m, /^target +\.\.\/.*1m$/m, /^resolves to +nothing$/m])
    assert.match(stdout, line);
  assert.equal(stdout.includes('\u001b'), false);
  const json = JSON.parse((await service.run(['files', 'stat', '--json', id, 'link'])).stdout) as object;
  assert.deepEqual(json, {
    path: '/code/link',
    kind: 'link',
    size: 5,
    modifiedAt: '1970-01-01T00:00:01.000Z',
    mode: '0777',
    linkTarget: '../\u001b[1m',
    resolvesTo: null,
  });
  assert.match((await service.run(['files', 'stat', id, 'missing'])).stderr, /missing.*no such file/);
});

test('cat writes the content alone to stdout', async () => {
  const { code, stdout } = await service.run(['files', 'cat', id, 'a']);
  assert.deepEqual([code, stdout], [0, 'a content']);
});

test('rm, mv, chmod and mkdir change what they name; rm tries every path', async () => {
  calls = [];
  const removed = await service.run(['files', 'rm', '-r', id, 'a', 'missing', 'b']);
  assert.equal(removed.code, 1);
  assert.equal(removed.stdout, '/code/a deleted\n/code/b deleted\n');
  assert.match(removed.stderr, /missing.*no such file/);
  assert.equal((await service.run(['files', 'mv', '-f', id, 'a', 'b'])).stdout, '/code/a is now /code/b\n');
  assert.equal((await service.run(['files', 'chmod', id, '755', 'a'])).stdout, '/code/a is now 0755\n');
  const refused = await service.run(['files', 'chmod', id, 'u+x', 'a']);
  assert.deepEqual([refused.code, refused.stdout], [2, '']);
  assert.match(refused.stderr, /<mode> must be permission bits in octal/);
  assert.equal((await service.run(['files', 'mkdir', id, 'n/m'])).stdout, '/code/n/m created\n');
  assert.deepEqual(
    calls.map(({ verb, query }) => [verb, query['path'], query['recursive'] ?? query['replace']].join(' ')).toSorted(),
    [
      'folder /code/n/m ',
      'mode /code/a ',
      'move /code/a true',
      'remove /code/a true',
      'remove /code/b true',
      'remove /code/missing true',
    ],
  );
});
