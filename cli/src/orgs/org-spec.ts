import { machineHours } from '../program/option-values.ts';
import type { CommandSpec, GroupSpec, OptionSpec } from '../program/command-spec.ts';

const ROLES = ['owner', 'admin', 'member', 'operator', 'viewer'] as const;
const YES: OptionSpec = { flags: '-y, --yes', about: 'skip the confirmation' };
const MEMBER = { name: '<user>', about: 'member id or email address' };

const DOMAIN = { name: '<domain>', about: 'domain of mail addresses' };

const caps: CommandSpec = {
  name: 'caps',
  summary: 'show or set the cap of machine hours per billing period',
  details: 'Without options, shows the cap. See berth usage for the hours used.',
  options: [
    {
      flags: '--machine-hours <hours>',
      about: "the org's own cap; none: use the cap of the plan",
      parse: machineHours,
      fields: ['sandboxMachineHourLimit'],
    },
    {
      flags: '--overage <on|off>',
      about: 'allow usage beyond the cap',
      choices: ['on', 'off'],
      fields: ['sandboxOverageEnabled'],
    },
  ],
  examples: [
    'berth org caps',
    'berth org caps --machine-hours 500 --overage off',
    'berth org caps --machine-hours none',
  ],
  load: async () => (await import('./caps.ts')).orgCaps,
};

export const orgGroup: GroupSpec = {
  name: 'org',
  summary: 'manage orgs, members and invitations',
  commands: [
    {
      name: 'ls',
      summary: 'list your orgs',
      examples: ['berth org ls'],
      load: async () => (await import('./orgs.ts')).listOrgs,
    },
    {
      name: 'use',
      summary: 'set the default org, used without --org and BERTH_ORG_ID',
      arguments: [{ name: '<org>', about: 'id or name' }],
      examples: ['berth org use org_uodiunxlni4uyqmllemsqh4l', 'berth org use "Our platform"'],
      json: false,
      load: async () => (await import('./orgs.ts')).useOrg,
    },
    {
      name: 'create',
      summary: 'create an org that you own, and print its id',
      arguments: [{ name: '<name>', about: 'name of the org' }],
      examples: ['berth org create "Our platform"'],
      load: async () => (await import('./orgs.ts')).createOrg,
    },
    {
      name: 'rename',
      summary: 'rename the org',
      arguments: [{ name: '<name>', about: 'new name of the org' }],
      examples: ['berth org rename "Our platform"'],
      load: async () => (await import('./orgs.ts')).renameOrg,
    },
    {
      name: 'members',
      summary: 'list the members, oldest first',
      examples: ['berth org members', "berth org members --json | jq -r '.members[].email'"],
      load: async () => (await import('./members.ts')).listMembers,
    },
    {
      name: 'set-role',
      summary: "change a member's role",
      arguments: [MEMBER, { name: '<role>', about: 'new role', choices: ROLES }],
      examples: ['berth org set-role ada@example.com admin'],
      load: async () => (await import('./members.ts')).setRole,
    },
    {
      name: 'remove-member',
      summary: 'remove a member from the org',
      arguments: [MEMBER],
      options: [YES],
      examples: ['berth org remove-member ada@example.com'],
      load: async () => (await import('./members.ts')).removeMember,
    },
    {
      name: 'leave',
      summary: 'leave an org',
      arguments: [{ name: '<org>', about: 'org id' }],
      options: [YES],
      examples: ['berth org leave org_uodiunxlni4uyqmllemsqh4l'],
      load: async () => (await import('./orgs.ts')).leaveOrg,
    },
    {
      name: 'invite',
      summary: "invite a person by email, and print the invitation's id",
      arguments: [{ name: '<email>', about: 'email address' }],
      options: [{ flags: '--role <role>', about: 'role in the org (default: member)', choices: ROLES }],
      examples: ['berth org invite ada@example.com --role admin'],
      load: async () => (await import('./invitations.ts')).invite,
    },
    {
      name: 'invitations',
      summary: 'list the pending invitations, newest first',
      examples: ['berth org invitations'],
      load: async () => (await import('./invitations.ts')).listInvitations,
    },
    {
      name: 'revoke-invitation',
      summary: 'revoke a pending invitation',
      arguments: [{ name: '<invitation>', about: 'invitation id' }],
      examples: ['berth org revoke-invitation inv_uodiunxlni4uyqmllemsqh4l'],
      load: async () => (await import('./invitations.ts')).revokeInvitation,
    },
    {
      name: 'agent-tokens',
      summary: "list the members' personal agent tokens, newest first",
      details: 'Shows which tokens a sign-in by single sign-on created. The other ones open no org that requires it.',
      examples: ['berth org agent-tokens'],
      load: async () => (await import('./agent-tokens.ts')).listOrgTokens,
    },
    {
      name: 'revoke-agent-token',
      summary: "revoke a member's personal agent token for the org",
      details: "The token stays valid in its holder's other orgs. To end all of a member's access, remove the member.",
      arguments: [{ name: '<token>', about: 'token id' }],
      options: [YES],
      examples: ['berth org revoke-agent-token agt_uodiunxlni4uyqmllemsqh4l'],
      load: async () => (await import('./agent-tokens.ts')).revokeOrgToken,
    },
    {
      name: 'domains',
      summary: 'list the mail domains, and whether single sign-on is required',
      examples: ['berth org domains'],
      load: async () => (await import('./sso.ts')).listDomains,
    },
    {
      name: 'claim-domain',
      summary: 'claim a mail domain, and print the TXT record that proves it',
      arguments: [DOMAIN],
      examples: ['berth org claim-domain example.com'],
      load: async () => (await import('./sso.ts')).claimDomain,
    },
    {
      name: 'verify-domain',
      summary: 'prove a claimed domain by its TXT record',
      arguments: [DOMAIN],
      examples: ['berth org verify-domain example.com'],
      load: async () => (await import('./sso.ts')).verifyDomain,
    },
    {
      name: 'remove-domain',
      summary: 'remove a mail domain from the org',
      arguments: [DOMAIN],
      examples: ['berth org remove-domain example.com'],
      load: async () => (await import('./sso.ts')).removeDomain,
    },
    {
      name: 'require-sso',
      summary: 'require single sign-on of members with an address in a proven domain, or stop',
      details:
        'Switching it on needs your own sign-in by single sign-on. API keys keep working; agent tokens of other ' +
        'sign-ins do not.',
      arguments: [{ name: '<state>', about: 'on or off', choices: ['on', 'off'], fields: ['required'] }],
      examples: ['berth org require-sso on'],
      load: async () => (await import('./sso.ts')).requireSso,
    },
    caps,
  ],
};
