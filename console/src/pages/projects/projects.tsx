// Projects of an org.
import { useQuery } from '@tanstack/react-query';
import { Plus } from 'lucide-react';
import { AGENT_LABELS, type Agent, type api } from '@berth/sdk';
import { projectsQuery } from '../../queries/orgs.ts';
import { deleteProject, modelKeyQuery, setModelKey } from '../../queries/projects.ts';
import { visibleText } from '../../rules/visible-text.ts';
import { projectsText as text } from '../../text/projects.ts';
import { DialogForm, TextField, useForm } from '../../ui/forms/index.ts';
import {
  Alert,
  Below,
  Button,
  Dialog,
  Page,
  Records,
  Time,
  Untrusted,
  useDialogHost,
  type Columns,
} from '../../ui/kit/index.ts';
import { Loaded, useOrgInView } from '../frame/content.tsx';
import { ProjectDialog } from './project-dialog.tsx';
import css from './models-dialog.module.css';

export function ProjectsPage() {
  const { orgId, refusalOf } = useOrgInView();
  const create = (
    <Button kind="primary" icon={Plus} reason={refusalOf('project.create')} dialog={<ProjectDialog project={null} />}>
      {text.create}
    </Button>
  );
  return (
    <Page title={text.title} actions={create}>
      <p>{text.hint}</p>
      <Loaded query={useQuery(projectsQuery(orgId))}>
        {(projects) => (
          <Records
            label={text.title}
            records={projects}
            keyOf={({ id }) => id}
            columns={COLUMNS}
            renderActions={(project) => <Actions project={project} />}
          />
        )}
      </Loaded>
    </Page>
  );
}

const COLUMNS: Columns<api.Project> = [
  {
    name: text.columns.name,
    cell: ({ id, name }) => (
      <>
        <Untrusted text={name} />
        <Below>
          <code>{id}</code>
        </Below>
      </>
    ),
  },
  { name: text.columns.use, cell: ({ useCase }) => <Untrusted text={text.serves(useCase)} /> },
  {
    name: text.columns.idle,
    quiet: true,
    cell: ({ defaultPersistencePolicy, defaultIdleMinutes }) =>
      defaultPersistencePolicy === 'always_on' ? text.alwaysOn : text.idle(defaultIdleMinutes),
  },
  { name: text.columns.wake, cell: ({ wakeOnUse }) => (wakeOnUse ? text.wakes.yes : text.wakes.no) },
  { name: text.columns.cap, cell: ({ sandboxMachineHourLimit }) => text.capOf(sandboxMachineHourLimit) },
  { name: text.columns.created, quiet: true, cell: ({ createdAt }) => <Time at={createdAt} /> },
];

function Actions({ project }: { project: api.Project }) {
  const { orgId, refusalOf } = useOrgInView();
  const name = visibleText(project.name);
  const remove = <DialogForm danger words={text.removeWords(name)} send={() => deleteProject(orgId, project.id)} />;
  return (
    <>
      <Button
        reason={refusalOf('project.update')}
        aria-label={text.editOf(name)}
        dialog={<ProjectDialog project={project} />}
      >
        {text.buttons.edit}
      </Button>
      <Button
        reason={refusalOf('agent_credentials.manage')}
        aria-label={text.modelsOf(name)}
        dialog={<ModelsDialog project={project} />}
      >
        {text.buttons.models}
      </Button>
      <Button kind="danger" reason={refusalOf('project.delete')} aria-label={text.removeOf(name)} dialog={remove}>
        {text.buttons.remove}
      </Button>
    </>
  );
}

const AGENTS = Object.keys(AGENT_LABELS) as Agent[];

/** Keys of a project at the model providers of agents. They are written, and never read. */
function ModelsDialog({ project }: { project: api.Project }) {
  const { close } = useDialogHost();
  return (
    <Dialog title={text.modelsOf(visibleText(project.name))} description={text.modelsHint} onClose={close}>
      {AGENTS.map((agent) => (
        <ModelKey key={agent} projectId={project.id} agent={agent} />
      ))}
      <p>
        <Button onClick={close}>{text.done}</Button>
      </p>
    </Dialog>
  );
}

function ModelKey({ projectId, agent }: { projectId: string; agent: Agent }) {
  const { orgId } = useOrgInView();
  const { data, error } = useQuery(modelKeyQuery(orgId, projectId, agent));
  const form = useForm({ apiKey: '' });
  const label = AGENT_LABELS[agent];
  const isStored = data?.stored === true;
  const set = (apiKey: string | null) => () => setModelKey(orgId, projectId, agent, apiKey);
  return (
    <form
      className={css.key}
      onSubmit={(event) => {
        event.preventDefault();
        form.run(set(form.values.apiKey), () => form.set({ apiKey: '' }));
      }}
    >
      <Alert title={text.modelsFailed} error={form.error ?? error} />
      <TextField
        label={text.key(label)}
        hint={text.keyHint(isStored ? text.keys.stored : text.keys.notStored)}
        type="password"
        autoComplete="new-password"
        required
        {...form.field('apiKey')}
      />
      <div className={css.buttons}>
        <Button type="submit" busy={form.isPending} aria-label={text.storeOf(label)}>
          {text.keys.store}
        </Button>
        <Button
          reason={isStored ? null : text.keys.notStored}
          aria-label={text.forgetOf(label)}
          onClick={() => form.run(set(null))}
        >
          {text.keys.forget}
        </Button>
      </div>
    </form>
  );
}
