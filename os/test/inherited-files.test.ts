import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { rootCertificates } from 'node:tls';

const MODULE = JSON.stringify(new URL('../src/inherited-files.ts', import.meta.url).href);

/** Files that a child of Node sees, if Node inherited /etc/hostname as descriptor 77. */
function filesOfChild(prepare: string): string {
  const code = `import { closeInheritedFiles } from ${MODULE};
    import { spawnSync } from 'node:child_process';
    ${prepare};
    console.log(spawnSync('ls', ['-l', '/proc/self/fd']).stdout.toString());`;
  const shell = 'exec 77< /etc/hostname; exec "$0" --input-type=module --eval "$1"';
  return spawnSync('bash', ['-c', shell, process.execPath, code]).stdout.toString();
}

test('a child process inherits no file that the caller of its parent left open', () => {
  assert.match(filesOfChild(''), /77 -> \/etc\/hostname/, 'the file is inherited without the call');
  const files = filesOfChild('closeInheritedFiles()');
  assert.match(files, /2 -> /);
  assert.doesNotMatch(files, /hostname/);
});

test('a forked process keeps its IPC channel', () => {
  const child = `import { closeInheritedFiles } from ${MODULE};
    closeInheritedFiles(); process.send('still here'); process.disconnect();`;
  const parent = `import { fork } from 'node:child_process';
    const child = fork('data:text/javascript,', { execArgv: ['--input-type=module', '--eval', process.argv[1]] });
    child.on('message', (text) => console.log(text));`;
  const { stdout } = spawnSync(process.execPath, ['--input-type=module', '--eval', parent, child]);
  assert.equal(stdout.toString(), 'still here\n');
});

test('certificates that Node is still reading are all read', () => {
  const folder = mkdtempSync(join(tmpdir(), 'berth-inherited-'));
  after(() => rmSync(folder, { recursive: true }));
  const file = join(folder, 'many.pem');
  writeFileSync(file, `${rootCertificates.join('\n')}\n`.repeat(20));
  const code = `import { closeInheritedFiles } from ${MODULE};
    import { getCACertificates } from 'node:tls';
    closeInheritedFiles(); console.log(getCACertificates('extra').length);`;
  const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '--eval', code], {
    env: { ...process.env, NODE_EXTRA_CA_CERTS: file },
  });
  assert.equal(`${stdout.toString()}${stderr.toString()}`, `${20 * rootCertificates.length}\n`);
});
