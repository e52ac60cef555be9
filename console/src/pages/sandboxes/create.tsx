// Form that creates a sandbox. A repeat of the same form returns the same sandbox.
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { Link, useNavigate } from 'react-router';
import {
  AGENT_LABELS,
  MACHINE_SIZES,
  type Agent,
  type api,
  type MachineSize,
  type PersistencePolicy,
} from '@berth/sdk';
import { END_USER_ID_CHARACTERS, NAME_CHARACTERS } from '@berth/sdk/limits';
import { PATHS } from '../../rules/paths.ts';
import { projectsQuery } from '../../queries/orgs.ts';
import { createSandbox } from '../../queries/sandboxes.ts';
import { isCapReached } from '../../rules/fault.ts';
import { parseLabels } from '../../rules/labels.ts';
import { randomId } from '../../rules/random-id.ts';
import type { CreateBody } from '../../rules/snippets.ts';
import { en } from '../../text/en.ts';
import { snippetsText } from '../../text/snippets.ts';
import { usageText } from '../../text/usage.ts';
import { Choices, Field, optionsOf, SelectField, TextField, useForm } from '../../ui/forms/index.ts';
import { Alert, Button, buttonClass, Notice, Page, Snippets } from '../../ui/kit/index.ts';
import { Loaded, useOrgInView } from '../frame/content.tsx';
import css from './create.module.css';

const text = en.create;

export function CreateSandboxPage() {
  const { orgId } = useOrgInView();
  return (
    <Page title={text.title}>
      <Loaded query={useQuery(projectsQuery(orgId))} empty={<Notice title={text.noProject} />}>
        {(projects) => <CreateForm projects={projects} />}
      </Loaded>
    </Page>
  );
}

const AGENTS = Object.entries(AGENT_LABELS).map(([value, label]) => ({ value: value as Agent, label }));
const POLICIES = Object.entries(text.policies).map(([value, label]) => ({ value: value as Policy, label }));
const SIZES = Object.entries(MACHINE_SIZES).map(([value, { vcpu, memoryGb, diskGb }]) => ({
  value: value as MachineSize,
  label: text.sizes[value as MachineSize],
  detail: [en.sandboxes.size(vcpu, memoryGb), text.disk(diskGb)],
}));

/** Empty: the project's. */
type Policy = PersistencePolicy | '';

const FIRST = {
  name: '',
  agent: 'agent_one' as Agent,
  machineSize: 'small' as MachineSize,
  repository: '',
  branch: '',
  endUserId: '',
  labels: '',
  persistencePolicy: '' as Policy,
  sshPublicKey: '',
};

type Values = typeof FIRST & { projectId: string };

/** Without the fields that are left to the service. */
function bodyOf(values: Values, metadata: Record<string, string>): CreateBody {
  const { agent, projectId, machineSize, persistencePolicy } = values;
  const { name, repository, branch, endUserId, sshPublicKey } = values;
  const given = Object.entries({ name, repository, branch, endUserId, sshPublicKey })
    .map(([key, value]) => [key, value.trim()] as const)
    .filter(([, value]) => value !== '');
  return {
    agent,
    projectId,
    machineSize,
    ...Object.fromEntries(given),
    ...(persistencePolicy === '' ? {} : { persistencePolicy }),
    ...(Object.keys(metadata).length === 0 ? {} : { metadata }),
  };
}

function CreateForm({ projects }: { projects: readonly api.Project[] }) {
  const { orgId, refusalOf } = useOrgInView();
  const navigate = useNavigate();
  const [key] = useState(randomId);
  const form = useForm<Values>({ ...FIRST, projectId: projects[0]?.id ?? '' });
  const { field } = form;
  const parsed = parseLabels(form.values.labels);
  const body = bodyOf(form.values, 'labels' in parsed ? parsed.labels : {});
  return (
    <form
      className={css.form}
      onSubmit={(event) => {
        event.preventDefault();
        if ('fault' in parsed) return;
        form.run(
          () => createSandbox(orgId, key, body),
          ({ id }) => void navigate(PATHS.sandbox(id), { replace: true }),
        );
      }}
    >
      <Alert title={text.failed} error={form.error}>
        {isCapReached(form.error) ? <Link to={PATHS.usage(orgId)}>{usageText.toCap}</Link> : null}
      </Alert>
      <TextField {...text.name} maxLength={NAME_CHARACTERS} {...field('name')} />
      <SelectField label={text.project} options={optionsOf(projects)} {...field('projectId')} />
      <Choices legend={text.agent} choices={AGENTS} {...field('agent')} />
      <Choices legend={text.size} choices={SIZES} {...field('machineSize')} />
      <div className={css.pair}>
        <TextField label={text.repository} hint={text.repositoryHint} {...field('repository')} />
        <TextField label={text.branch} {...field('branch')} />
      </div>
      <details className={css.more}>
        <summary>{text.more}</summary>
        <div className={css.form}>
          <TextField {...text.endUser} maxLength={END_USER_ID_CHARACTERS} {...field('endUserId')} />
          <Field {...text.labels} error={'fault' in parsed ? text.labelFault(parsed.fault) : undefined}>
            {(attributes) => (
              <textarea
                {...attributes}
                spellCheck={false}
                value={form.values.labels}
                onChange={({ target }) => form.set({ labels: target.value })}
              />
            )}
          </Field>
          <Choices legend={text.persistence} choices={POLICIES} {...field('persistencePolicy')} />
          <TextField {...text.sshKey} {...field('sshPublicKey')} />
        </div>
      </details>
      <details className={css.more}>
        <summary>{snippetsText.title}</summary>
        <div className={css.form}>
          <Snippets calls={[{ name: text.title, call: { route: 'createSandbox', path: { orgId }, body } }]} />
        </div>
      </details>
      <div className={css.buttons}>
        <Button type="submit" kind="primary" reason={refusalOf('sandbox.create')} busy={form.isPending}>
          {form.isPending ? text.submitting : text.submit}
        </Button>
        <Link className={buttonClass()} to={PATHS.sandboxes(orgId)}>
          {en.states.cancel}
        </Link>
      </div>
    </form>
  );
}
