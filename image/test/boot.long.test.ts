import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { agentListFile } from '../src/build/agents.ts';
import { readAgents } from '../src/build/recipe.ts';
import { defaultCacheFolder } from '../src/config.ts';
import { ensureImage } from '../src/ensure-image.ts';
import type { BootedVm } from './booted-vm.ts';
import { bootImage } from './booted-vm.ts';

describe('a VM booted from the image', { concurrency: false, timeout: 600_000 }, () => {
  const signal = AbortSignal.timeout(600_000);
  let folder: string;
  let machine: BootedVm;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'berth-boot-'));
    const image = await ensureImage({ cacheFolder: defaultCacheFolder(process.env), signal });
    machine = await bootImage(image, folder, signal);
  });
  after(async () => {
    await machine?.stop();
    await rm(folder, { recursive: true, force: true });
  });

  // The first test: every command below writes something.
  it('writes nothing to its disk while it is idle', async () => {
    // Writes of the boot may still be on their way; a quarter of a minute without any must come
    // within two.
    const deadline = Date.now() + 120_000;
    for (;;) {
      const before = await machine.diskWrites();
      await machine.idle(15_000);
      const written = (await machine.diskWrites()) - before;
      if (written === 0) break;
      assert.ok(Date.now() < deadline, `the idle machine still writes: ${written} bytes in the last 15 s`);
    }
  });

  it('runs commands as berth, who owns /code and is root by sudo without a password', async () => {
    const { stdout, stderr } = await machine.run(
      'id -un; id -u; stat -c %U:%G /code; cd /code && touch a && rm a; sudo -n id -un; echo $HOME',
    );
    assert.equal(stderr, '');
    assert.deepEqual(stdout.trim().split('\n'), ['berth', '1000', 'berth:berth', 'root', '/home/berth']);
  });

  it('has the tools that coding agents need', async () => {
    const programs =
      'git curl python3 gcc g++ make rg jq ssh sshd tmux bwrap sudo node npm npx ip ps nano vi less unzip';
    const { stdout } = await machine.run(
      `for each in ${programs}; do command -v $each >/dev/null ` +
        '|| sudo sh -c "command -v $each" >/dev/null || echo $each; done',
    );
    assert.equal(stdout, '');
    const versions = await machine.run(
      'node --version; npm --version; python3 -c "import ssl, venv"; ' +
        'bwrap --unshare-user --ro-bind / / true && echo sandboxed',
    );
    assert.match(versions.stdout, /^v24\.\d+\.\d+\n\d+\.\d+\.\d+\nsandboxed\n$/, versions.stderr);
    const compiled = await machine.run(`cd /tmp && echo 'int main(){return 7;}' > a.c && gcc a.c && ./a.out; echo $?`);
    assert.equal(compiled.stdout, '7\n', compiled.stderr);
  });

  it('has the coding agents of the recipe, and has run nothing of them', async () => {
    const agents = await readAgents();
    const { stdout } = await machine.run('cat /opt/berth/agents/agents.json; pgrep -fc ^/opt/berth/agents');
    assert.equal(stdout, `${agentListFile(agents)}0\n`);
    // Its binary is self-contained and of moderate size; the emulated CPU runs it in seconds.
    const version = await machine.run('/opt/berth/agents/codex/bin/codex --version');
    assert.equal(version.stdout, `codex-cli ${agents[0]?.version}\n`, version.stderr);
    const files = agents.flatMap(({ name, files: list }) => list.map((file) => `/opt/berth/agents/${name}/${file}`));
    const owners = await machine.run(`stat -c '%U %a %s' ${files.join(' ')}`);
    assert.match(owners.stdout, /^(root 755 \d{8,}\n|root 644 \d+\n)+$/, owners.stderr);
  });

  it('has fully configured packages and trusted certificates', async () => {
    const { stdout } = await machine.run(
      `dpkg-query -W -f '\${db:Status-Abbrev}\\n' | sort -u; sudo dpkg --audit; ` +
        'grep -c BEGIN /etc/ssl/certs/ca-certificates.crt',
    );
    const [status, certificates] = stdout.trim().split('\n');
    assert.equal(status?.trim(), 'ii');
    assert.ok(Number(certificates) > 100, stdout);
  });

  it('has no identity: no ssh host key, no random seed, only the zero machine-id of the rehearsal', async () => {
    const { stdout } = await machine.run(
      'ls /etc/ssh/ssh_host_* /var/lib/systemd/random-seed /var/lib/dbus/machine-id 2>/dev/null; ' +
        '[ ! -s /etc/machine-id ] || cat /etc/machine-id',
    );
    assert.match(stdout, /^(0{32}\n)?$/);
  });

  it('restarts a killed guest daemon, and keeps the ssh server off', async () => {
    const before = await machine.run('pgrep -o -f guestd.mjs');
    const killed = await machine.run('sudo kill -9 $(pgrep -o -f guestd.mjs); sleep 600');
    assert.equal(killed.exitCode, -1, 'the connection ends with the daemon');
    const { stdout } = await machine.run(
      'pgrep -o -f guestd.mjs; sudo sv status /etc/service/guestd /etc/service/ssh; cat /proc/1/comm',
    );
    assert.match(stdout, /^\d+\nrun: \/etc\/service\/guestd: .*\ndown: \/etc\/service\/ssh: .*\nrunit\n$/);
    assert.notEqual(stdout.split('\n')[0], before.stdout.trim());
  });

  it('has the network that the host expects, and cgroup v2', async () => {
    const { stdout } = await machine.run(
      'ip -o -4 address show eth0 | tr -s " " | cut -d " " -f 4; ' +
        'ip route show default; cat /etc/resolv.conf; ' +
        'stat -f -c %T /sys/fs/cgroup; cat /sys/fs/cgroup/cgroup.subtree_control',
    );
    assert.deepEqual(
      stdout
        .trim()
        .split('\n')
        .map((line) => line.trim()),
      [
        '169.254.0.21/30',
        'default via 169.254.0.22 dev eth0',
        'nameserver 169.254.0.22',
        'cgroup2fs',
        'cpu io memory pids',
      ],
    );
  });

  it('loads the modules that users request', async () => {
    const { stdout, stderr } = await machine.run(
      'cd /tmp && mkdir -p l u w m && ' +
        'sudo mount -t overlay -o lowerdir=l,upperdir=u,workdir=w none m && sudo umount m && ' +
        'sudo ip tuntap add t0 mode tap && sudo modprobe nf_tables && head -c 0 /dev/fuse && echo loaded',
    );
    assert.equal(stdout, 'loaded\n', stderr);
  });
});
