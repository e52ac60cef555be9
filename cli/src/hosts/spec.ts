// `berth service`: the hosts of the installation, for its operator.
import { HOSTS_PAGE } from '@berth/sdk/limits';
import { wholeNumber } from '../program/option-values.ts';
import type { GroupSpec } from '../program/command-spec.ts';

const HST = 'hst_h5ekqv7m2xzp3dtw6nabryjc';
const WHO = "Requires an owner or admin of the operator's org, which the first start created, or a key of one.";

export const serviceGroup: GroupSpec = {
  name: 'service',
  summary: 'show the hosts of the installation and their free capacity, for its operator',
  commands: [
    {
      name: 'hosts',
      summary: 'list hosts with their free capacity, warm pool and number of VMs',
      details: `${WHO} Figures of a host that does not respond are the last known ones.`,
      examples: ['berth service hosts', "berth service hosts --json | jq -r '.hosts[] | [.id, .state] | @tsv'"],
      load: async () => (await import('./hosts.ts')).listHosts,
    },
    {
      name: 'host',
      summary: 'show a host with its sandboxes, newest first',
      details: `${WHO} Sandboxes of all orgs are listed, by id alone.`,
      arguments: [{ name: '<host>', about: 'host id' }],
      options: [
        {
          flags: '--limit <n>',
          about: `maximum number of sandboxes (default: ${HOSTS_PAGE.default})`,
          parse: wholeNumber(1, HOSTS_PAGE.max),
        },
        { flags: '--after <cursor>', about: 'continue behind this cursor' },
      ],
      examples: [`berth service host ${HST}`, `berth service host ${HST} --json | jq .host.free`],
      load: async () => (await import('./hosts.ts')).showHost,
    },
  ],
};
