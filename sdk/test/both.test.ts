// The SDK on the real service and on the test server, with the same expectations.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { Sandbox } from '../src/index.ts';
import { Berth, BerthError, CommandFailed, type DownloadOptions, type ListOptions } from '../src/index.ts';
import { failing, realWorld, worldInMemory, type World } from './worlds.ts';

for (const start of [realWorld, worldInMemory]) {
  describe(start === realWorld ? 'on the real service' : 'on the test server', () => {
    let world: World;
    let berth: Berth;
    before(async () => {
      world = await start();
      berth = world.client();
    });
    after(() => world.close());
    const make = async (): Promise<Sandbox> =>
      await berth.sandboxes.create({ agent: 'agent_one', machineSize: 'small' });

    test('me and orgs return the caller and the org of the key', async () => {
      assert.equal(typeof (await berth.me()).id, 'string');
      assert.deepEqual(
        (await berth.orgs()).map(({ id, role }) => [id, role]),
        [[world.orgId, 'owner']],
      );
    });

    test('a sandbox is created awake, fetched, listed by end user, and gone after destroy', async () => {
      const sandbox = await berth.sandboxes.create({
        agent: 'agent_two',
        name: 'one',
        endUserId: 'user-1',
        metadata: { plan: 'trial', seats: 3 },
      });
      assert.equal(sandbox.status, 'ready');
      const { agent, name, endUserId, metadata, projectId, mode, deletedAt } = sandbox.data;
      assert.deepEqual(
        [agent, name, endUserId, metadata, projectId, mode, deletedAt],
        ['agent_two', 'one', 'user-1', { plan: 'trial', seats: 3 }, world.projectId, 'persistent', null],
      );
      assert.deepEqual((await berth.sandboxes.get(sandbox.id)).data, sandbox.data);
      const other = await make();
      assert.deepEqual(
        (await berth.sandboxes.list()).map(({ id }) => id),
        [other.id, sandbox.id],
      );
      assert.deepEqual(
        (await berth.sandboxes.list({ endUserId: 'user-1' })).map(({ id }) => id),
        [sandbox.id],
      );
      for (const [filter, expected] of [
        [{ status: ['ready'], q: 'ONE', metadata: { seats: 3 } }, [sandbox.id]],
        [{ metadata: { plan: 'trial', seats: 4 } }, []],
        [{ status: ['stopped', 'failed'] }, []],
        [{ q: other.id.slice(0, 20) }, [other.id]],
        [{ projectId: world.projectId, sort: 'createdAt' }, [sandbox.id, other.id]],
      ] satisfies [ListOptions, string[]][]) {
        const found = await berth.sandboxes.list(filter);
        assert.deepEqual(
          found.map(({ id }) => id),
          expected,
          JSON.stringify(filter),
        );
      }
      assert.deepEqual(await berth.sandboxes.counts(), { total: 2, byStatus: { ready: 2 } });
      assert.deepEqual(await berth.sandboxes.counts({ q: 'one', metadata: { plan: 'none' } }), {
        total: 0,
        byStatus: {},
      });
      await assert.rejects(
        // @ts-expect-error a status that the service does not have
        berth.sandboxes.list({ status: ['sleepy'] }),
        failing('invalid_request', 400),
      );
      await sandbox.destroy();
      assert.equal(sandbox.status, 'deleted');
      assert.notEqual(sandbox.data.deletedAt, null);
      assert.equal((await sandbox.destroy()).status, 'deleted');
      assert.deepEqual(
        (await berth.sandboxes.list()).map(({ id }) => id),
        [other.id],
      );
      await other.destroy();
    });

    test('exec resolves for any exit code; orThrow rejects for a code other than 0', async () => {
      await using sandbox = await make();
      const fine = await sandbox.exec('echo hello there');
      assert.deepEqual(
        [fine.ok, fine.exitCode, fine.stdout, fine.stderr, fine.truncated, fine.timedOut],
        [true, 0, 'hello there\n', '', false, false],
      );
      assert.equal(fine.orThrow(), fine);
      assert.equal((await sandbox.exec('echo x').orThrow()).stdout, 'x\n');
      const failed = await sandbox.exec('exit 3');
      assert.deepEqual([failed.ok, failed.exitCode, failed.stderr], [false, 3, 'it did not work\n']);
      await assert.rejects(sandbox.exec('exit 3').orThrow(), (error: unknown) => {
        assert.ok(error instanceof CommandFailed);
        assert.deepEqual([error.code, error.result.exitCode, error.retryable], ['command_failed', 3, false]);
        assert.match(error.message, /`exit 3` exited with 3: it did not work/);
        return true;
      });
      const options = { cwd: 'app', env: { A: 'b', C: '' }, user: 'root', stdin: 'in', timeoutSeconds: 7 };
      const { stdout } = await sandbox.exec('options', { ...options, signal: AbortSignal.timeout(60_000) });
      assert.deepEqual(JSON.parse(stdout), options);
      await assert.rejects(sandbox.exec('true', { user: 'no such' }), (error: unknown) => {
        assert.ok(error instanceof BerthError);
        assert.deepEqual([error.status, error.code], [400, 'invalid_request']);
        assert.match(error.message, /user/);
        return true;
      });
      const late = await sandbox.exec('late', { timeoutSeconds: 5 });
      assert.deepEqual([late.timedOut, late.exitCode], [true, 124]);
    });

    test('files are written, read as text and bytes, and listed', async () => {
      await using sandbox = await make();
      const { files } = sandbox;
      const { sha256, ...written } = await files.write('src/a.txt', 'grüße\n');
      assert.deepEqual(written, { path: '/code/src/a.txt', size: 8 });
      assert.equal((await files.get('src/a.txt')).sha256, sha256);
      await assert.rejects(files.write('src/a.txt', 'x', { ifUnchanged: 'absent' }), failing('file_exists', 409));
      const other = '0'.repeat(64);
      await assert.rejects(files.write('src/a.txt', 'x', { ifUnchanged: other }), failing('file_changed', 409));
      assert.equal(await files.read('src/a.txt'), 'grüße\n');
      const bytes = Uint8Array.from({ length: 70_000 }, (_, index) => (index * 7) % 256);
      assert.equal((await files.write('/code/b.bin', bytes)).size, 70_000);
      assert.deepEqual(await files.readBytes('b.bin'), bytes);
      assert.deepEqual(await files.readBytes('src/../src/a.txt'), new TextEncoder().encode('grüße\n'));
      assert.equal((await files.write('c', bytes.buffer.slice(0, 3))).size, 3);
      const { entries, ...listing } = await files.list();
      assert.deepEqual(listing, { path: '/code', truncated: false });
      assert.deepEqual(
        entries.map(({ label, path, type, kind, size }) => [label, path, type, kind, kind === 'file' ? size : 0]),
        [
          ['b.bin', '/code/b.bin', 'file', 'file', 70_000],
          ['c', '/code/c', 'file', 'file', 3],
          ['src', '/code/src', 'directory', 'directory', 0],
        ],
      );
      assert.deepEqual(Object.keys((await files.tree('.', { depth: 2 })).directories), ['/code', '/code/src']);
      assert.deepEqual(Object.keys((await files.tree('', { depth: 1 })).directories), ['/code']);
      await assert.rejects(files.read('nothing'), failing('file_not_found', 404));
      await assert.rejects(files.read('src'), failing('not_a_file', 400));
      await assert.rejects(files.list('b.bin'), failing('not_a_directory', 400));
      await assert.rejects(files.write('b.bin/x', ''), failing('not_a_directory', 400));
      await assert.rejects(files.write('big', new Uint8Array(2 * 1024 * 1024 + 1)), failing('file_too_large', 413));
    });

    test('a file and a folder are described, and an absent path is told from a present one', async () => {
      await using sandbox = await make();
      const { files } = sandbox;
      await files.write('src/a', 'four');
      const { modifiedAt, ...stat } = await files.stat('src/../src/a');
      assert.deepEqual(stat, { path: '/code/src/a', kind: 'file', size: 4, mode: '0644' });
      assert.ok(Math.abs(Date.parse(modifiedAt ?? '') - Date.now()) < 60_000, String(modifiedAt));
      const { kind, mode } = await files.stat('/code/src/');
      assert.deepEqual([kind, mode], ['directory', '0755']);
      const [entry] = (await files.list('src')).entries;
      assert.deepEqual([entry?.mode, entry?.modifiedAt], ['0644', modifiedAt]);
      assert.deepEqual(
        await Promise.all(['src', 'src/a', '/', 'src/b', 'src/a/b', 'b/c'].map((path) => files.exists(path))),
        [true, true, true, false, false, false],
      );
      await assert.rejects(files.stat('src/b'), failing('file_not_found', 404));
      const modeOf = async (path: string): Promise<string> => (await files.stat(path)).mode;
      await files.write('src/run', '', { mode: '755' });
      assert.deepEqual(await files.chmod('src/a', '0600'), { path: '/code/src/a', mode: '0600' });
      await files.write('src/a', 'kept');
      await files.write('src/run', 'kept');
      assert.deepEqual([await modeOf('src/a'), await modeOf('src/run')], ['0600', '0755']);
      await assert.rejects(files.chmod('src/c', '644'), failing('file_not_found', 404));
      await assert.rejects(files.chmod('src/a', '4755'), failing('invalid_request', 400));
      await assert.rejects(files.write('src/a', '', { mode: 'rwx' }), failing('invalid_request', 400));
      await assert.rejects(files.exists('x'.repeat(4_097)), failing('invalid_request', 400));
    });

    test('a file is downloaded whole and by ranges, and a change between two ranges is noticed', async () => {
      await using sandbox = await make();
      const { files } = sandbox;
      const read = async (options?: DownloadOptions): Promise<[string, number, number, number]> => {
        const { stream, size, from, length } = await files.download('f', options);
        return [await new Response(stream).text(), from, length, size];
      };
      await files.write('f', '0123456789');
      const { etag, stream } = await files.download('f');
      await stream.cancel();
      assert.match(etag ?? '', /^"[^"]+"$/);
      assert.deepEqual(await read(), ['0123456789', 0, 10, 10]);
      assert.deepEqual(await read({ from: 4 }), ['456789', 4, 6, 10]);
      assert.deepEqual(await read({ from: 4, length: 3 }), ['456', 4, 3, 10]);
      assert.deepEqual(await read({ from: 8, length: 30 }), ['89', 8, 2, 10]);
      assert.deepEqual(await read({ last: 3 }), ['789', 7, 3, 10]);
      assert.deepEqual(await read({ last: 30 }), ['0123456789', 0, 10, 10]);
      assert.deepEqual(await read({ from: 4, ifRange: etag ?? '' }), ['456789', 4, 6, 10]);
      await files.write('f', 'other text');
      assert.deepEqual(await read({ from: 4, ifRange: etag ?? '' }), ['other text', 0, 10, 10]);
      await assert.rejects(read({ from: 10 }), failing('range_not_satisfiable', 416));
      await files.write('f', '');
      assert.deepEqual(await read({ from: 4 }), ['', 0, 0, 0]);
      for (const options of [{ from: -1 }, { from: 0.5 }, { length: 0 }, { last: 0 }, { from: Number.NaN }])
        await assert.rejects(read(options), failing('configuration'), JSON.stringify(options));
    });

    test('a sandbox sleeps, refuses commands meanwhile, and is woken', async () => {
      await using sandbox = await make();
      await sandbox.files.write('kept', 'x');
      assert.equal((await sandbox.sleep()).status, 'stopped');
      assert.equal(sandbox.data.wakesFrom, 'snapshot');
      await assert.rejects(sandbox.exec('true'), failing('sandbox_state_conflict', 409));
      assert.equal((await sandbox.sleep()).status, 'stopped');
      assert.equal((await sandbox.wake()).status, 'ready');
      assert.equal(sandbox.data.lastWake?.from, 'snapshot');
      assert.equal(await sandbox.files.read('kept'), 'x');
      await assert.rejects(sandbox.wake(), failing('wake_not_possible', 400));
      const begun = await sandbox.sleep({ wait: false });
      assert.match(begun.status, /^(sleeping|stopped)$/);
      assert.equal((await begun.waitUntil('stopped')).status, 'stopped');
      await assert.rejects(sandbox.waitUntil('ready', { timeoutMs: 250 }), failing('timeout'));
    });

    test('a command wakes a sandbox whose project has wakeOnUse', async () => {
      const project = await berth.projects.create({ wakeOnUse: true });
      const sandbox = await berth.sandboxes.create({ agent: 'agent_one', projectId: project.id });
      await sandbox.sleep();
      assert.equal((await sandbox.exec('echo up')).stdout, 'up\n');
      assert.equal((await sandbox.refresh()).status, 'ready');
      await sandbox.destroy();
    });

    test('a stopped sandbox is resized at once, and its disk never shrinks', async () => {
      await using sandbox = await make();
      await sandbox.sleep();
      await sandbox.resize({ vcpu: 2, memoryGb: 4 });
      const { allocated_vcpu, allocated_memory_gb, allocated_disk_gb, pendingAllocation } = sandbox.data;
      assert.deepEqual(
        [allocated_vcpu, allocated_memory_gb, allocated_disk_gb, pendingAllocation],
        [2, 4, 10, undefined],
      );
      await assert.rejects(sandbox.resize({ diskGb: 1 }), failing('allocation_out_of_bounds', 400));
      await assert.rejects(sandbox.resize({}), failing('invalid_request', 400));
    });

    test('an ephemeral sandbox is renewed by its time to live, and destroyed by sleep', async () => {
      const sandbox = await berth.sandboxes.create({ agent: 'agent_one', mode: 'ephemeral', ttlSeconds: 600 });
      const before = Date.parse(sandbox.data.expiresAt ?? '');
      await sandbox.renew();
      assert.equal(Date.parse(sandbox.data.expiresAt ?? '') - before, 600_000);
      assert.equal((await sandbox.sleep()).status, 'deleted');
      await using persistent = await make();
      await assert.rejects(persistent.renew(), failing('not_ephemeral', 400));
      const internal = await berth.projects.create({ useCase: 'internal' });
      const create = berth.sandboxes.create({
        agent: 'agent_one',
        projectId: internal.id,
        mode: 'ephemeral',
        ttlSeconds: 60,
      });
      await assert.rejects(create, failing('ephemeral_not_allowed', 400));
    });

    test('metrics and a sample with the recommended size are returned', async () => {
      await using sandbox = await make();
      const { guest, host } = await sandbox.metrics();
      assert.equal(guest.cpu.vcpu, 1);
      assert.equal(typeof host.cpuSeconds, 'number');
      const hour = await sandbox.metricsHistory();
      assert.deepEqual([hour.stepSeconds, Array.isArray(hour.points)], [10, true]);
      await assert.rejects(sandbox.metricsHistory({ windowSeconds: 86_401 }), failing('invalid_request', 400));
      const { currentAllocation, storedAsPending } = await sandbox.sampleMetrics();
      assert.deepEqual([currentAllocation, storedAsPending], [{ vcpu: 1, memoryGb: 1, diskGb: 10 }, false]);
    });

    test('preview links are created, listed and revoked', async () => {
      await using sandbox = await make();
      const team = await sandbox.previews.create({ port: 3000 });
      assert.deepEqual([team.id, team.audience], [null, 'team']);
      const open = await sandbox.previews.create({
        port: 8080,
        audience: 'public',
        expiresInSeconds: 60,
        label: 'demo',
      });
      assert.match(open.url ?? '', /^http.*token=/);
      assert.deepEqual(
        (await sandbox.previews.list()).map(({ id, label }) => [id, label]),
        [[open.id, 'demo']],
      );
      assert.notEqual((await sandbox.previews.revoke(open.id ?? '')).revokedAt, null);
      assert.deepEqual(await sandbox.previews.list(), []);
      await assert.rejects(sandbox.previews.revoke('prv_nothing'), failing('preview_link_not_found', 404));
    });

    test('a public URL of a port is reused while it lasts, by its port, lifetime and embedding', async () => {
      await using sandbox = await make();
      const day = await sandbox.url(3000, { audience: 'public' });
      assert.match(day, /token=/);
      assert.equal(await sandbox.url(3000, { audience: 'public', expiresInSeconds: 86_400 }), day);
      const created = async (): Promise<number> => (await sandbox.previews.list()).length;
      assert.equal(await created(), 1);
      const others = [
        { port: 3001, audience: 'public' },
        { port: 3000, audience: 'public', expiresInSeconds: 60 },
        { port: 3000, audience: 'public', embeddable: true },
      ] as const;
      for (const { port, ...options } of others) assert.notEqual(await sandbox.url(port, options), day);
      // A link of another caller, and one that is revoked, are not reused.
      await sandbox.previews.create({ port: 3002, audience: 'public' });
      assert.equal(await created(), 5);
      await sandbox.url(3002, { audience: 'public' });
      const link = (await sandbox.previews.list()).find(({ url }) => url === day);
      await sandbox.previews.revoke(link?.id ?? '');
      assert.notEqual(await sandbox.url(3000, { audience: 'public' }), day);
      assert.equal(await created(), 6);
    });

    test('a URL of a port for the team is not stored', async () => {
      await using sandbox = await make();
      assert.match(await sandbox.url(3000), /token=/);
      assert.deepEqual(await sandbox.previews.list(), []);
    });

    test('projects are created, changed and fetched; only a session token may delete one', async () => {
      const project = await berth.projects.create({ name: 'shop', useCase: 'external', metadata: { team: 'a' } });
      assert.deepEqual(
        [project.name, project.useCase, project.metadata, project.wakeOnUse],
        ['shop', 'external', { team: 'a' }, false],
      );
      const changed = await berth.projects.update(project.id, {
        wakeOnUse: true,
        repoCredentials: { token: 'a secret of a host' },
      });
      assert.deepEqual([changed.wakeOnUse, changed.hasRepoCredentials, changed.name], [true, true, 'shop']);
      assert.equal('repoCredentials' in changed, false);
      assert.deepEqual(await berth.projects.get(project.id), changed);
      assert.equal((await berth.projects.list())[0]?.id, project.id);
      await assert.rejects(berth.projects.delete(project.id), failing('auth_kind_not_allowed', 403));
      const session = world.client({ apiKey: world.sessionToken });
      const used = await berth.sandboxes.create({ agent: 'agent_one', projectId: project.id });
      await assert.rejects(session.projects.delete(project.id), failing('project_has_sandboxes', 409));
      await used.destroy();
      const { projectId: _, ...withoutProject } = world.options;
      await assert.rejects(new Berth(withoutProject).sandboxes.create(), (error: unknown) => {
        assert.ok(failing('configuration')(error));
        const { message } = error as BerthError;
        assert.match(
          message,
          /^the org has several projects: .*\(shop\).*; pass projectId to the call or to new Berth/,
        );
        return true;
      });
      assert.notEqual((await session.projects.delete(project.id)).deletedAt, null);
      await assert.rejects(berth.projects.get(project.id), failing('project_not_found', 404));
    });

    test('only a session token manages keys; scopes limit a key, and revocation disables it', async () => {
      await assert.rejects(berth.keys.list(), failing('auth_kind_not_allowed', 403));
      const session = world.client({ apiKey: () => Promise.resolve(world.sessionToken) });
      const { apiKey, token } = await session.keys.create({
        name: 'reader',
        scopes: ['sandbox.read'],
        expiresInDays: 1,
      });
      assert.deepEqual([apiKey.name, apiKey.scopes, apiKey.revokedAt], ['reader', ['sandbox.read'], null]);
      assert.ok((await session.keys.list()).some(({ id }) => id === apiKey.id));
      const reader = world.client({ apiKey: token });
      assert.ok(Array.isArray(await reader.sandboxes.list()));
      await assert.rejects(reader.sandboxes.create({ agent: 'agent_one' }), failing('permission_denied', 403));
      assert.notEqual((await session.keys.revoke(apiKey.id)).revokedAt, null);
      await assert.rejects(reader.me(), failing('unauthenticated', 401));
    });

    test('the feed is read by page and completely, newest first', async () => {
      const sandbox = await make();
      await sandbox.exec('true');
      await sandbox.destroy();
      const query = { sandboxId: sandbox.id };
      const all: string[] = [];
      for await (const { kind } of berth.activity.all({ ...query, limit: 2 })) all.push(kind);
      assert.equal(all.at(-1), 'sandbox_created');
      for (const kind of ['sandbox_exec', 'sandbox_destroy_requested', 'sandbox_deleted'])
        assert.ok(all.includes(kind), kind);
      const page = await berth.activity.page({ ...query, limit: 1 });
      assert.deepEqual([page.activity.map(({ kind }) => kind), page.hasMore], [all.slice(0, 1), true]);
    });

    test('entries are followed from a moment on, each once and oldest first', async () => {
      const sandbox = await make();
      const { cursor } = await berth.activity.since(undefined);
      await sandbox.destroy();
      const found: string[] = [];
      for await (const { id, kind } of berth.activity.follow({ cursor, sandboxId: sandbox.id })) {
        found.push(id);
        if (kind === 'sandbox_deleted') break;
      }
      assert.equal(new Set(found).size, found.length);
      const later = await berth.activity.since(cursor, { sandboxId: sandbox.id, kind: ['sandbox_destroy_requested'] });
      assert.deepEqual([later.activity.map(({ id }) => id), later.hasMore], [found.slice(0, 1), false]);
    });

    test('usage of org, project and end users is returned, with caps set by a session token', async () => {
      const sandbox = await berth.sandboxes.create({ agent: 'agent_one', endUserId: 'metered' });
      const usage = await berth.usage.get();
      const mayBeNull: null extends typeof usage.includedMachineHours ? true : never = true;
      assert.ok(mayBeNull);
      assert.deepEqual(
        [usage.includedMachineHours, usage.sandboxMachineHourLimit, usage.usageAlert.status],
        [null, null, 'normal'],
      );
      assert.ok(usage.usedMachineHours >= 0 && Date.parse(usage.periodEndsAt) > Date.parse(usage.periodStartsAt));
      assert.ok((await berth.usage.endUsers()).endUsers.some(({ endUserId }) => endUserId === 'metered'));
      assert.ok((await berth.usage.get({ endUserId: 'metered' })).usedMachineHours <= usage.usedMachineHours + 1);
      await assert.rejects(berth.usage.get({ projectId: 'prj_nothing' }), failing('unknown_project', 400));
      await assert.rejects(
        berth.usage.setGuardrails({ sandboxMachineHourLimit: 5 }),
        failing('auth_kind_not_allowed', 403),
      );
      const session = world.client({ apiKey: world.sessionToken });
      assert.equal((await session.usage.setGuardrails({ sandboxMachineHourLimit: 50 })).sandboxMachineHourLimit, 50);
      assert.equal((await berth.usage.get()).sandboxMachineHourLimitOverride, 50);
      assert.equal(await session.usage.setProjectLimit(world.projectId, 20), 20);
      assert.equal((await berth.usage.get({ projectId: world.projectId })).sandboxMachineHourLimit, 20);
      assert.equal(await session.usage.setProjectLimit(world.projectId, null), null);
      assert.equal(
        (await session.usage.setGuardrails({ sandboxMachineHourLimit: null })).sandboxMachineHourLimit,
        null,
      );
      await sandbox.destroy();
    });

    test('lists are read page by page through the raw client', async () => {
      const made = [await make(), await make(), await make()];
      const path = { orgId: world.orgId };
      const first = await berth.raw.listSandboxes({ path, query: { limit: 2 } });
      assert.deepEqual([first.sandboxes.length, first.hasMore], [2, true]);
      const second = await berth.raw.listSandboxes({ path, query: { limit: 2, after: first.nextCursor ?? '' } });
      assert.deepEqual(
        [...first.sandboxes, ...second.sandboxes].map(({ id }) => id),
        made.map(({ id }) => id).toReversed(),
      );
      await assert.rejects(berth.raw.listSandboxes({ path, query: { limit: 0 } }), failing('invalid_request', 400));
      for (const sandbox of made) await sandbox.destroy({ wait: false });
    });

    test('an error has the status, code and request id of the response', async () => {
      await assert.rejects(berth.sandboxes.get('sbx_nothing'), (error: unknown) => {
        assert.ok(failing('sandbox_not_found', 404)(error) && error instanceof BerthError);
        assert.match(error.requestId ?? '', /^req_/);
        assert.deepEqual([error.retryable, error.retryAfter], [false, undefined]);
        return true;
      });
      await assert.rejects(
        berth.sandboxes.create({ agent: 'agent_one', projectId: 'prj_nothing' }),
        failing('unknown_project', 400),
      );
      await assert.rejects(berth.sandboxes.create({ agent: 'nobody' as never }), failing('invalid_request', 400));
      await assert.rejects(
        berth.sandboxes.create({ agent: 'agent_one', ttlSeconds: 60 }),
        failing('invalid_request', 400),
      );
      await assert.rejects(
        berth.sandboxes.create({ agent: 'agent_one', surprise: 1 } as never),
        failing('invalid_request', 400),
      );
      await assert.rejects(berth.sandboxes.list({ orgId: 'org_nothing' }), failing('org_not_found', 404));
      await assert.rejects(world.client({ apiKey: 'brt_wrong' }).me(), failing('unauthenticated', 401));
    });

    test('a call ends on its signal and at its timeout', async () => {
      await using sandbox = await make();
      const aborted = new AbortController();
      const reason = new Error('not any more');
      const running = sandbox.exec('hang', { signal: aborted.signal });
      setTimeout(() => aborted.abort(reason), 50);
      await assert.rejects(running, reason);
      await assert.rejects(berth.me({ signal: AbortSignal.abort(reason) }), reason);
      await assert.rejects(sandbox.exec('hang', { timeoutMs: 100 }), failing('timeout'));
      await assert.rejects(sandbox.exec('hang', { timeoutMs: 100 }), /The command may have run/);
    });

    test('await using destroys the sandbox at the end of its scope', async () => {
      let id: string;
      {
        await using sandbox = await make();
        ({ id } = sandbox);
      }
      const left = await berth.sandboxes.get(id);
      assert.equal((await left.waitUntil('deleted')).status, 'deleted');
    });
  });
}
