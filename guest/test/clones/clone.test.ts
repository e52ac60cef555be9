// A repository becomes the content of the code folder: the resulting files, refusals, and the
// report of each failure. Against a real git host.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chownSync, existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { createServer } from 'node:https';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { CLONE_ANSWER_MAX_BYTES, guestCloneOutput } from '@berth/protocol/calls/clones.ts';
import { clone, gitIn } from './calls.ts';
import { startDaemon, testUid } from '../daemon.ts';
import { GitServer } from './git-server.ts';

let git: GitServer;
let commits: { main: string; dev: string };
before(async () => {
  git = await GitServer.start();
  commits = git.add('acme/web', { 'README.md': 'read me\n', 'src/a.txt': 'a\n', 'run.sh': '#!/bin/sh\n' });
});
after(() => git.stop());

test('the code folder holds the repository with all branches and history, owned by the user', async (t) => {
  const daemon = await startDaemon(t);
  const url = `${git.url}/acme/web.git`;
  assert.deepEqual(await clone(daemon, url), { outcome: 'cloned' });
  assert.deepEqual((await readdir(daemon.codeFolder)).sort(), ['.git', 'README.md', 'run.sh', 'src']);
  assert.equal(gitIn(daemon, 'rev-parse', 'HEAD'), commits.main);
  assert.equal(gitIn(daemon, 'symbolic-ref', 'HEAD'), 'refs/heads/main');
  assert.equal(gitIn(daemon, 'rev-parse', 'origin/dev'), commits.dev);
  assert.equal(gitIn(daemon, 'rev-list', '--count', 'HEAD'), '2');
  assert.equal(gitIn(daemon, 'status', '--porcelain'), '');
  assert.equal(gitIn(daemon, 'rev-parse', '--is-shallow-repository'), 'false');
  for (const path of ['', '.git', '.git/config', 'src', 'src/a.txt'])
    assert.equal(statSync(join(daemon.codeFolder, path)).uid, testUid, path);

  const config = readFileSync(join(daemon.codeFolder, '.git/config'), 'utf8');
  assert.equal(gitIn(daemon, 'config', 'remote.origin.url'), url);
  // Settings of the clone must not stay in the user's repository.
  assert.doesNotMatch(config, /credential|hooksPath|lowSpeed|maintenance/);
});

test('the requested branch is checked out, with the others beside it', async (t) => {
  const daemon = await startDaemon(t);
  assert.deepEqual(await clone(daemon, `${git.url}/acme/web.git`, { branch: 'dev' }), { outcome: 'cloned' });
  assert.equal(gitIn(daemon, 'symbolic-ref', 'HEAD'), 'refs/heads/dev');
  assert.equal(gitIn(daemon, 'rev-parse', 'HEAD'), commits.dev);
  assert.equal(gitIn(daemon, 'rev-parse', 'origin/main'), commits.main);
});

test('a repository without a commit is cloned', async (t) => {
  git.addEmpty('acme/empty');
  const daemon = await startDaemon(t);
  assert.deepEqual(await clone(daemon, `${git.url}/acme/empty.git`), { outcome: 'cloned' });
  assert.deepEqual(await readdir(daemon.codeFolder), ['.git']);
});

test("git's last output is kept, that of the last clone", async (t) => {
  const daemon = await startDaemon(t);
  const output = async () => guestCloneOutput.parse(JSON.parse((await daemon.call('GET', '/clone/output')).text));
  assert.deepEqual(await output(), { text: '', truncated: false });
  await clone(daemon, `${git.url}/acme/web.git`, { branch: 'none' });
  const failed = await output();
  assert.match(failed.text, /^Cloning into '[^\n]+\n(?:[^\n]+\n)*fatal: Remote branch none not found/);
  assert.equal(failed.truncated, false);
  await clone(daemon, `${git.url}/acme/none.git`);
  assert.match((await output()).text, /not found/);
});

test('a clone runs once: a repeated request reports that, even if the folder changed since', async (t) => {
  const daemon = await startDaemon(t);
  const url = `${git.url}/acme/web.git`;
  await clone(daemon, url);
  execFileSync('sh', ['-c', 'rm -rf .git src && echo mine > README.md'], { cwd: daemon.codeFolder });
  await daemon.stop('SIGKILL');
  await daemon.start();
  const asked = git.requests.length;
  assert.deepEqual(await clone(daemon, url, { branch: 'dev' }), { outcome: 'cloned' });
  assert.equal(git.requests.length, asked);
  assert.deepEqual((await readdir(daemon.codeFolder)).sort(), ['README.md', 'run.sh']);
  assert.equal(readFileSync(join(daemon.codeFolder, 'README.md'), 'utf8'), 'mine\n');
});

test('other user files stay; one that the repository has too fails the clone and is unchanged', async (t) => {
  const [daemon, other] = [await startDaemon(t), await startDaemon(t)];
  await daemon.exec('echo mine > notes.txt');
  assert.deepEqual(await clone(daemon, `${git.url}/acme/web.git`), { outcome: 'cloned' });
  assert.equal(gitIn(daemon, 'status', '--porcelain'), '?? notes.txt');

  await other.exec('echo mine > README.md');
  const refused = await clone(other, `${git.url}/acme/web.git`);
  assert.deepEqual(refused, { outcome: 'failed', code: 'folder_not_empty', message: '"README.md" is there already' });
  assert.deepEqual(await readdir(other.codeFolder), ['README.md']);
  assert.equal(readFileSync(join(other.codeFolder, 'README.md'), 'utf8'), 'mine\n');
  await other.exec('rm README.md');
  assert.deepEqual(await clone(other, `${git.url}/acme/web.git`), { outcome: 'cloned' });
});

for (const [title, path, branch, code, message] of [
  [
    'an unknown repository',
    '/acme/none.git',
    null,
    'repository_not_found',
    /^fatal: repository '.*\/acme\/none\.git\/' not found$/,
  ],
  [
    'an unknown branch',
    '/acme/web.git',
    'nope',
    'branch_not_found',
    /^fatal: Remote branch nope not found in upstream origin$/,
  ],
  [
    'a branch that looks like an option',
    '/acme/web.git',
    '--upload-pack=x',
    'branch_not_found',
    /upload-pack=x not found/,
  ],
] as const) {
  test(`${title} is reported as that, and leaves the folder empty`, async (t) => {
    const daemon = await startDaemon(t);
    const result = await clone(daemon, git.url + path, { branch });
    assert.ok(result.outcome === 'failed');
    assert.equal(result.code, code);
    assert.match(result.message, message);
    assert.deepEqual(await readdir(daemon.codeFolder), []);
  });
}

test('a host that is unreachable, unresolvable or has an untrusted certificate is a network failure', async (t) => {
  const daemon = await startDaemon(t);
  const folder = daemon.folder;
  const subject = ['-subj', '/CN=localhost', '-keyout', 'key.pem', '-out', 'cert.pem'];
  execFileSync('openssl', ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', ...subject], {
    cwd: folder,
    stdio: 'ignore',
  });
  const read = (name: string): Buffer => readFileSync(join(folder, name));
  const server = createServer({ key: read('key.pem'), cert: read('cert.pem') }, (_request, response) => response.end());
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  const { port } = server.address() as AddressInfo;
  for (const url of [`https://localhost:${port}/a/b`, 'http://127.0.0.1:1/a/b', 'http://no-such-host.invalid/a/b']) {
    const result = await clone(daemon, url);
    assert.ok(result.outcome === 'failed');
    assert.equal(result.code, 'network', result.message);
  }
});

test('fetching more than the limit is a failure', async (t) => {
  git.add('acme/large', {
    'noise.bin': execFileSync('head', ['-c', '3000000', '/dev/urandom'], { maxBuffer: 4_000_000 }),
  });
  const daemon = await startDaemon(t);
  const result = await clone(daemon, `${git.url}/acme/large.git`, { maxMib: 2 });
  assert.deepEqual(result, { outcome: 'failed', code: 'too_large', message: 'more than 2 MiB were fetched' });
  assert.deepEqual(await readdir(daemon.codeFolder), []);
  assert.deepEqual(await clone(daemon, `${git.url}/acme/large.git`, { maxMib: 4 }), { outcome: 'cloned' });
});

test(
  'a full disk is reported as that, and fetched files are removed',
  { skip: process.getuid?.() !== 0 },
  async (t) => {
    git.add('acme/wide', {
      'noise.bin': execFileSync('head', ['-c', '3000000', '/dev/urandom'], { maxBuffer: 4_000_000 }),
    });
    const daemon = await startDaemon(t);
    const { codeFolder } = daemon;
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=2m,uid=${testUid}`, 'tmpfs', codeFolder]);
    try {
      const result = await clone(daemon, `${git.url}/acme/wide.git`);
      assert.ok(result.outcome === 'failed');
      assert.equal(result.code, 'disk_full', result.message);
      assert.deepEqual(await readdir(codeFolder), []);
    } finally {
      execFileSync('umount', ['--lazy', codeFolder]);
    }
  },
);

test('user settings and hooks are ignored, and no submodule is fetched', async (t) => {
  git.add('acme/part');
  git.add('acme/whole', { '.gitmodules': `[submodule "part"]\n\tpath = part\n\turl = ${git.url}/acme/part.git\n` });
  const daemon = await startDaemon(t);
  await daemon.exec(
    'printf "[url \\"http://127.0.0.1:1/\\"]\\n\\tinsteadOf = http://\\n' +
      '[submodule]\\n\\trecurse = true\\n" > .gitconfig',
  );
  const hooks = join(daemon.folder, 'hooks');
  execFileSync('sh', [
    '-c',
    `mkdir -p ${hooks} && printf '#!/bin/sh\\ntouch ${daemon.codeFolder}/ran\\n' ` +
      `> ${hooks}/post-checkout && chmod -R 777 ${hooks}`,
  ]);
  await daemon.exec(`git config --global core.hooksPath ${hooks}`);
  assert.deepEqual(await clone(daemon, `${git.url}/acme/whole.git`), { outcome: 'cloned' });
  assert.equal(existsSync(join(daemon.codeFolder, 'ran')), false);
  assert.deepEqual(
    git.requests.filter(({ url }) => url.startsWith('/acme/part')),
    [],
  );
});

test('the host’s own messages are bounded and decide nothing', async (t) => {
  const words = `${'\u001b[2J'.repeat(3)}No space left${'x'.repeat(60_000)}`;
  const line = Buffer.from(`ERR ${words}`);
  const packet = Buffer.concat([Buffer.from((line.length + 4).toString(16).padStart(4, '0')), line]);
  git.script = {
    fits: (url) => url.startsWith('/hostile/'),
    answer: (_request, response) => {
      response.writeHead(200, { 'content-type': 'application/x-git-upload-pack-advertisement' });
      response.end(Buffer.concat([Buffer.from('001e# service=git-upload-pack\n0000'), packet]));
    },
  };
  t.after(() => (git.script = null));
  const daemon = await startDaemon(t);
  const result = await clone(daemon, `${git.url}/hostile/repo.git`);
  assert.ok(result.outcome === 'failed');
  assert.ok(result.message.length <= 2_000);
  assert.ok(JSON.stringify(result).length < CLONE_ANSWER_MAX_BYTES);
  assert.equal(result.code, 'failed', result.message.slice(0, 200));
});

test('a missing or unwritable code folder is a failure with a message', async (t) => {
  const daemon = await startDaemon(t);
  execFileSync('rmdir', [daemon.codeFolder]);
  const gone = await clone(daemon, `${git.url}/acme/web.git`);
  assert.ok(gone.outcome === 'failed' && /no such file or directory/.test(gone.message));
  execFileSync('mkdir', [daemon.codeFolder]);
  chownSync(daemon.codeFolder, testUid, testUid);
  writeFileSync(join(daemon.folder, 'clone.json'), 'not JSON');
  // An unreadable state counts as none.
  assert.deepEqual(await clone(daemon, `${git.url}/acme/web.git`), { outcome: 'cloned' });
});
