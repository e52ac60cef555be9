// `berth shell`, `ssh`, `forward`, `tunnel` and `known-host`.
import { FORWARD_LIMITS } from './forward-ports.ts';
import { port } from '../program/option-values.ts';
import type { CommandSpec } from '../program/command-spec.ts';
import { SANDBOX } from '../program/sandbox-argument.ts';

const shell: CommandSpec = {
  name: 'shell',
  summary: 'open the login shell of a sandbox, without ssh',
  details: "Exits with the shell's exit code.",
  arguments: [SANDBOX],
  examples: ['berth shell sbx_uodiunxlni4uyqmllemsqh4l'],
  json: false,
  load: async () => (await import('./shell.ts')).shell,
};

const ssh: CommandSpec = {
  name: 'ssh',
  summary: 'connect by ssh to a sandbox created with --ssh-key',
  details:
    'Arguments after the sandbox are passed to ssh. ' +
    'The ssh agent is forwarded only if the first of them is -A, whatever the ssh configuration says. ' +
    "Exits with ssh's exit code: that of the remote command, or 255 if the connection fails.",
  arguments: [SANDBOX, { name: '[arguments...]', about: 'ssh options (-i, -L, -R, -N, ...), then a command' }],
  examples: [
    'berth ssh sbx_uodiunxlni4uyqmllemsqh4l',
    'berth ssh sbx_uodiunxlni4uyqmllemsqh4l -L 8080:127.0.0.1:3000 -N # forward local port 8080 to port 3000',
  ],
  passThrough: true,
  json: false,
  failureExit: 255,
  load: async () => (await import('./ssh.ts')).ssh,
};

const forward: CommandSpec = {
  name: 'forward',
  summary: 'forward local ports to ports of a sandbox',
  details:
    'Listens until Ctrl-C. Each local connection has a connection to the sandbox. A failed one is reported; the ' +
    'next one is tried again, so that a sandbox that slept is usable once awake. A ' +
    `connection wakes it if its project has wakeOnUse. At most ${FORWARD_LIMITS.connections} connections are open.`,
  arguments: [
    SANDBOX,
    {
      name: '<ports...>',
      about: 'LOCAL:REMOTE, such as 8080:3000; 3000 for 3000:3000; 0:3000 or :3000 for a free local port',
      fields: ['port'],
    },
  ],
  options: [{ flags: '--address <address>', about: 'local IP address to listen on', default: '127.0.0.1' }],
  examples: [
    'berth forward sbx_uodiunxlni4uyqmllemsqh4l 3000',
    'berth forward sbx_uodiunxlni4uyqmllemsqh4l 8080:3000 0:5432',
  ],
  load: async () => (await import('./forward.ts')).forward,
};

const tunnel: CommandSpec = {
  name: 'tunnel',
  summary: "connect stdin and stdout to a port of a sandbox, for ssh's ProxyCommand",
  arguments: [SANDBOX],
  options: [{ flags: '--port <port>', about: 'port in the sandbox (default: 22)', parse: port }],
  examples: [
    "ssh -o ProxyCommand='berth tunnel %h' berth@sbx_uodiunxlni4uyqmllemsqh4l",
    'berth tunnel sbx_uodiunxlni4uyqmllemsqh4l --port 5432',
  ],
  json: false,
  load: async () => (await import('./tunnel.ts')).tunnel,
};

const knownHost: CommandSpec = {
  name: 'known-host',
  summary: "print the known_hosts line of a sandbox, for ssh's KnownHostsCommand",
  arguments: [SANDBOX],
  examples: [
    "ssh -o KnownHostsCommand='berth known-host %h' " +
      "-o ProxyCommand='berth tunnel %h' berth@sbx_uodiunxlni4uyqmllemsqh4l",
  ],
  json: false,
  load: async () => (await import('./known-host.ts')).knownHost,
};

export const connectionCommands: readonly CommandSpec[] = [shell, ssh, forward, tunnel, knownHost];
