// Creates or changes a project. Fields that did not change are not sent.
import type { api, PersistencePolicy } from '@berth/sdk';
import { NAME_CHARACTERS } from '@berth/sdk/limits';
import { saveProject, setProjectCap } from '../../queries/projects.ts';
import { mayIn, rolesThatMay } from '../../rules/access.ts';
import { visibleText } from '../../rules/visible-text.ts';
import { en } from '../../text/en.ts';
import { projectsText as text } from '../../text/projects.ts';
import { Check, DialogForm, SelectField, TextField, useForm } from '../../ui/forms/index.ts';
import { useOrgInView } from '../frame/content.tsx';

/** Permission to let agents act without approval; the field of a person who lacks it. */
const DISABLE = 'agent_approvals.disable';
const LOCKED = {
  disabled: true,
  hint: en.actions.why({ kind: 'forbidden', permission: DISABLE }, rolesThatMay(DISABLE)) ?? '',
};

const numberOrNull = (value: string): number | null => (value.trim() === '' ? null : Number(value));
const textOrNull = (value: string): string | null => value.trim() || null;

/** @param project null: a new one */
export function ProjectDialog({ project }: { project: api.Project | null }) {
  const { orgId, org } = useOrgInView();
  const form = useForm(() => valuesOf(project));
  const { values, field } = form;
  const before = valuesOf(project);
  const title = project === null ? text.createTitle : text.editOf(visibleText(project.name));
  const send = async (): Promise<void> => {
    await saveProject(orgId, project?.id ?? null, changesOf(values, before, project !== null));
    if (project !== null && values.cap !== before.cap) await setProjectCap(orgId, project.id, numberOrNull(values.cap));
  };
  const isLocked = before.approvals !== 'never' && org !== undefined && !mayIn(org, DISABLE);
  return (
    <DialogForm words={text.formWords(title, values.name || text.title)} form={form} send={send}>
      <TextField
        label={text.name.label}
        {...(project === null ? { hint: text.name.hint } : { required: true })}
        maxLength={NAME_CHARACTERS}
        {...field('name', 'body.name')}
      />
      <SelectField label={text.purpose} options={text.purposes} {...field('useCase', 'body.useCase')} />
      <SelectField
        label={text.persistence}
        options={text.policies}
        {...field('persistence', 'body.defaultPersistencePolicy')}
      />
      <TextField
        {...text.idleMinutes}
        type="number"
        min={0}
        step={1}
        {...field('idleMinutes', 'body.defaultIdleMinutes')}
      />
      <Check label={text.wakeOnUse} {...field('wakeOnUse')} />
      <SelectField
        label={text.approvals}
        options={text.approvalsOptions}
        {...(isLocked ? LOCKED : {})}
        {...field('approvals', 'body.agentApprovals')}
      />
      <TextField
        label={text.repository}
        hint={text.repositoryHint}
        {...field('repository', 'body.defaultRepository')}
      />
      <TextField label={text.branch} {...field('branch', 'body.defaultBranch')} />
      <TextField
        label={text.repoToken}
        hint={text.repoTokenHint(project?.hasRepoCredentials === true)}
        type="password"
        autoComplete="new-password"
        {...field('repoToken', 'body.repoCredentials.token')}
      />
      {project !== null && org !== undefined && mayIn(org, 'usage_guardrails.manage') ? (
        <TextField {...text.cap} type="number" min={0} step="any" {...field('cap', 'body.sandboxMachineHourLimit')} />
      ) : null}
    </DialogForm>
  );
}

function valuesOf(project: api.Project | null) {
  return {
    name: project?.name ?? '',
    useCase: project?.useCase === 'external' ? 'external' : 'internal',
    persistence: (project?.defaultPersistencePolicy ?? '') as PersistencePolicy | '',
    idleMinutes: project?.defaultIdleMinutes?.toString() ?? '',
    wakeOnUse: project?.wakeOnUse ?? false,
    approvals: (project?.agentApprovals ?? 'ask') as 'ask' | 'never',
    repository: project?.defaultRepository ?? '',
    branch: project?.defaultBranch ?? '',
    repoToken: '',
    cap: project?.sandboxMachineHourLimit?.toString() ?? '',
  };
}

type Values = ReturnType<typeof valuesOf>;

/** The fields that changed. Another use case than the two offered stays unless it is changed. */
function changesOf(values: Values, before: Values, exists: boolean): api.UpdateProjectData['body'] {
  const after = bodyOf(values, exists);
  const unchanged = bodyOf(before, exists);
  const isChanged = (name: string): boolean =>
    JSON.stringify(after[name as keyof typeof after]) !== JSON.stringify(unchanged[name as keyof typeof after]);
  return Object.fromEntries(Object.entries(after).filter(([name]) => isChanged(name)));
}

const bodyOf = (values: Values, exists: boolean) => ({
  name: exists ? values.name : values.name.trim() || undefined,
  useCase: values.useCase,
  defaultPersistencePolicy: values.persistence || null,
  defaultIdleMinutes: numberOrNull(values.idleMinutes),
  wakeOnUse: values.wakeOnUse,
  agentApprovals: values.approvals,
  defaultRepository: textOrNull(values.repository),
  defaultBranch: textOrNull(values.branch),
  repoCredentials: { token: values.repoToken },
});
