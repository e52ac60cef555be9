// Guest daemon: wires its parts together and serves. Runs as root; a supervisor restarts it.
import { chmodSync, mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { messageOf } from '@berth/os/errors.ts';
import gitCredential from './clones/git-credential.pl';
import { Agents } from './agents/agents.ts';
import { Clone } from './clones/clone.ts';
import { KEEPER_ARGUMENT, runSecretKeeper } from './clones/keeper.ts';
import { Commands } from './commands/commands.ts';
import { Launcher } from './keeper/launcher.ts';
import { readConfig } from './machine/config.ts';
import { FileAgent } from './files/agent.ts';
import fileAppends from './files/append.pl';
import fileChanges from './files/changes.pl';
import fileProgram from './files/program.pl';
import fileWatch from './files/watch.pl';
import { Files } from './files/files.ts';
import { FileWatches } from './files/watches.ts';
import { IdentityMarker } from './identity/marker.ts';
import { IdentityStep } from './identity/identity.ts';
import { KernelCalls } from './machine/kernel-calls.ts';
import kernelCalls from './machine/kernel-calls.pl';
import { Keeper } from './keeper/keeper.ts';
import keeperProgram from './keeper/keeper.pl';
import { Processes } from './processes/processes.ts';
import { OomProtection } from './machine/oom-protection.ts';
import { rehearse } from './rehearsal.ts';
import { Secret } from './access/secret.ts';
import { guestHandlers } from './server/handlers.ts';
import { createGuestServer } from './server/server.ts';
import { PosixSessions } from './commands/sessions.ts';
import { StagedVariables } from './keeper/staged-variables.ts';
import { Terminals } from './terminals/terminals.ts';
import { ChangeLock } from './machine/change-lock.ts';
import { WakeStep } from './identity/wake.ts';

if (process.argv[2] === KEEPER_ARGUMENT) {
  await runSecretKeeper();
  process.exit(0);
}

const config = readConfig(process.env);
process.umask(0o022);
mkdirSync(config.runFolder, { recursive: true });
chmodSync(config.runFolder, 0o700);

const secret = new Secret(join(config.runFolder, 'secret'));
let machine: { kernel: KernelCalls; marker: IdentityMarker } | undefined;
let protection: OomProtection | undefined;
if (config.appliesIdentity) {
  protection = new OomProtection();
  machine = { kernel: new KernelCalls(kernelCalls), marker: new IdentityMarker(config.identityMarkerFile) };
  machine.kernel.start();
}
const sessions = new PosixSessions();
const keeper = new Keeper(join(config.runFolder, 'keeper'), keeperProgram, config.maxLeftOpen);
const launcher = new Launcher(config, keeper);
const commands = new Commands(launcher, sessions, config.maxRunning);
const terminals = new Terminals(launcher, sessions, config.maxTerminals);
const fileAgent = new FileAgent(config, fileChanges + fileAppends + fileWatch + fileProgram, protection);
const files = new Files(fileAgent);
launcher.recover();
await Promise.all([keeper.connect(), fileAgent.start()]);

let fault: string | undefined;
if (machine !== undefined && secret.state === 'none' && !machine.marker.there) {
  fault = await rehearse(config, { commands, files }, machine).then(
    () => undefined,
    (error: unknown) => `the rehearsal of a restore failed: ${messageOf(error)}`,
  );
  if (fault !== undefined) console.error(fault);
}

const processes = new Processes(config, launcher);
await processes.recover();
const agents = new Agents(config);
await agents.recover();
const clone = new Clone(config, gitCredential, protection);
const { spaceEveryMs } = config;
const handlers = guestHandlers({
  secret,
  commands,
  clone,
  terminals,
  processes,
  files,
  watches: new FileWatches(files),
  agents,
  variables: new StagedVariables(),
  changeLock: new ChangeLock(),
  identity: new IdentityStep(config, secret, machine),
  wake: new WakeStep(secret, machine),
  changesMachine: machine !== undefined,
  fault,
});
const server = createGuestServer({ secret, spaceEveryMs, handlers });
server.listen(config.port, config.address);
await once(server, 'listening');
const { port } = server.address() as AddressInfo;
if (config.portFile !== undefined) {
  writeFileSync(`${config.portFile}.new`, `${port}\n`);
  renameSync(`${config.portFile}.new`, config.portFile);
}
console.log(`the guest daemon listens on ${config.address}:${port}`);

for (const name of ['SIGTERM', 'SIGINT'] as const) {
  process.once(name, () => {
    commands.killAll();
    terminals.hangUpAll();
    agents.detach();
    void clone.end().then(() => process.exit(0));
  });
}
