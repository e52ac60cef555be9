# Keeper of processes: starts them, copies their output into files, and records how they ended. It
# outlives the guest daemon, which connects to it again after a restart. Perl: it is in every
# Debian, makes real pipes and terminals, and one process of 8 MB serves hundreds.
#
# Arguments: path of its Unix socket, and how many outputs of ended processes stay open after
# `discard`. Runs as root, or as the user of all processes. Without a daemon, it keeps only the
# processes with a record: the callers of the others are gone with it, so these are killed. Exits when
# nothing is left to keep.
#
# Frames in both directions: length (4 bytes, big endian), then fields separated by NUL.
#   from the daemon:
#     start ID FOLDER SETTINGS CWD VARIABLES VARIABLE... PROGRAM ARGUMENT0 ARGUMENT...
#     input ID BYTES       the last field may contain NUL
#     end-input ID
#     signal ID NUMBER     to the process group; in a terminal to the foreground programs
#     size ID ROWS COLUMNS
#     watch ID STREAM OFFSET   asks for `grown` once the stream is longer; frees what came before
#     discard ID           nobody reads its output any more: what is still written is dropped
#     forget ID            closes its output, and with it its terminal
#     list                 answers `kept` for each process, then `listed`
#   to the daemon:
#     started ID PID       or: failed ID STAGE ERRNO
#     taken ID BYTES       all input up to there is written; `shut ID`: nobody reads it
#     grown ID STREAM LENGTH   or `closed ID STREAM LENGTH`: no writer is left
#     ended ID CODE SIGNAL TIMED_OUT LENGTH LENGTH   of stdout and stderr, or of the output
#     kept ID PID INPUT CODE SIGNAL TIMED_OUT    the last three are empty while it runs; INPUT: bytes
#
# SETTINGS are words NAME=NUMBER: `tty`, `rows`, `columns`, `uid`, `gid`, `groups` (with commas),
# `keep` (bytes of each stream that stay readable), `hold` (1: the process waits for its reader
# instead of losing output), `limit` (ms until it is killed), `stdin` (0: /dev/null), `script` (1:
# FOLDER/script is its descriptor 3, and is removed), `record` (1: writes the file `end` into FOLDER).
#
# A stream is stored in FOLDER/STREAM as files named by the offset of their first byte, 16 hex
# digits. A missing range between two files was lost, for example because the disk was full.
use strict;
use Fcntl ();
use List::Util ();
use POSIX ();
use Socket ();
use Time::HiRes ();

# Least and most bytes that one read takes, and the size of a pipe.
my ($LITTLE, $SOME) = (65536, 262144);
# A pipe holds at most this much: what a program wrote before its exit.
my $DRAIN = 1048576;
# Seconds until bytes are written again that the disk had no room for.
my $RETRY = 0.2;
# Seconds without work until the next process is forked, while programs run and while none does.
my ($PAUSE, $SHORT_PAUSE) = (0.05, 0.001);
# F_SETPIPE_SZ
my $SET_PIPE_SIZE = 1031;
# TIOCSPTLCK, TIOCGPTN, TIOCSWINSZ, TIOCSCTTY, TIOCGPGRP, TIOCSIG
my ($unlock, $number_of, $set_size, $control, $group_of, $send_signal) =
  (0x40045431, 0x80045430, 0x5414, 0x540e, 0x540f, 0x40045436);
my ($path, $left_open) = @ARGV;
my $is_root = $> == 0;
umask 0077;
# Closes descriptors that the daemon was started with.
if (opendir(my $folder, '/proc/self/fd')) {
  my @open = grep { /^\d+$/ && $_ > 2 } readdir $folder;
  closedir $folder;
  POSIX::close($_) for @open;
}

# Two daemons may start a keeper at once: one gets the lock, the other exits.
sysopen(my $lock, "$path.lock", POSIX::O_RDWR | POSIX::O_CREAT, 0600) or die "$path.lock: $!\n";
flock($lock, Fcntl::LOCK_EX | Fcntl::LOCK_NB) or exit 0;
unlink $path;
socket(my $listener, Socket::PF_UNIX, Socket::SOCK_STREAM, 0) or die "socket: $!\n";
bind($listener, Socket::sockaddr_un($path)) && listen($listener, 8) or die "$path: $!\n";
not_blocking($listener);

$SIG{PIPE} = 'IGNORE';
$SIG{HUP} = 'IGNORE';
# Ends the select below, also when the signal comes before it.
pipe(my $woken, my $waking) or die "pipe: $!\n";
not_blocking($_) for $woken, $waking;
$SIG{CHLD} = sub { local $!; syswrite $waking, '.'; };
# Preference of the kernel's OOM killer, from -1000 (never) to 1000. A forked process inherits it.
my $score;
if ($is_root) { sysopen($score, '/proc/self/oom_score_adj', POSIX::O_WRONLY) or die "oom_score_adj: $!\n"; }
score(-900);

my ($daemon, $received, $sending) = (undef, '', '');
my %kept;
my $discarded = 0;
# The process that becomes the next program, and the variables of the last one.
my ($next, $used, @variables) = (undef, '');
my $give_up_at = now() + 10;
print STDOUT "ready\n";
close STDOUT;
open(STDOUT, '>', '/dev/null');

sub not_blocking { fcntl($_[0], POSIX::F_SETFL, fcntl($_[0], POSIX::F_GETFL, 0) | POSIX::O_NONBLOCK); }

# True when a read or write must be retried later.
sub later { $!{EAGAIN} || $!{EINTR} }

sub say_daemon {
  return if !defined $daemon;
  my $frame = join "\0", @_;
  $sending .= pack('N', length $frame) . $frame;
}

sub score { syswrite($score, "$_[0]\n") if defined $score; }

sub resize { ioctl($_[0], $set_size, pack('S4', $_[1], $_[2], 0, 0)); }

# Both ends of a terminal; dies with the stage's name.
sub terminal {
  my ($settings) = @_;
  sysopen(my $master, '/dev/ptmx', POSIX::O_RDWR | POSIX::O_NOCTTY) or die "terminal\n";
  my ($locked, $number) = (pack('i', 0), pack('i', 0));
  ioctl($master, $unlock, $locked) && ioctl($master, $number_of, $number) or die "terminal\n";
  my $name = '/dev/pts/' . unpack('i', $number);
  sysopen(my $slave, $name, POSIX::O_RDWR | POSIX::O_NOCTTY) or die "terminal\n";
  chown $settings->{uid}, -1, $slave if $is_root;
  resize($master, $settings->{rows}, $settings->{columns}) or die "terminal\n";
  # IUTF8: the erase key deletes a whole character.
  my $modes = POSIX::Termios->new;
  $modes->getattr(fileno $slave) or die "terminal\n";
  $modes->setiflag($modes->getiflag | 0x4000);
  $modes->setattr(fileno($slave), POSIX::TCSANOW) or die "terminal\n";
  return ($master, $slave, $name);
}

sub use_variables {
  my $all = join "\0", @_;
  return if $all eq $used;
  %ENV = map { /^([^=]+)=(.*)$/s } @_;
  $used = $all;
}

# Forks the process that will become the next program. Forking takes longer than all else of a start,
# so this is done while there is nothing to do. It has the variables of the last program, since most
# programs have the same.
sub prepare {
  return if defined $next;
  my @pairs = map { pipe(my $reader, my $writer) or die "pipe\n"; [$reader, $writer] } 0 .. 4;
  my ($orders, $faults, $in, $out, $err) = @pairs;
  fcntl($_->[0], $SET_PIPE_SIZE, $SOME) for $out, $err;
  use_variables(@variables);
  score(0);
  my $pid = fork;
  wait_for_program($orders->[0], $faults->[1], $in->[0], $out->[1], $err->[1]) if defined $pid && $pid == 0;
  score(-900);
  die "fork\n" if !defined $pid;
  $next = { pid => $pid, order => $orders->[1], fault => $faults->[0], mine => [$in->[1], $out->[0], $err->[0]] };
}

# In the forked process: becomes the program that it is told, or exits with the keeper.
sub wait_for_program {
  my ($orders, $failed, @ends) = @_;
  my %own = map { fileno($_) => 1 } $orders, $failed, @ends;
  # 3 is taken: the number of the script, which must not be one that closes with the exec.
  if (opendir(my $folder, '/proc/self/fd')) {
    my @others = grep { /^\d+$/ && $_ > 3 && !$own{$_} } readdir $folder;
    closedir $folder;
    POSIX::close($_) for @others;
  }
  my $order = '';
  while (length $order < 4 || length $order < 4 + unpack 'N', $order) {
    sysread($orders, $order, $SOME, length $order) or POSIX::_exit(0);
  }
  my ($folder, $words, $cwd, $count, @rest) = split /\0/, substr($order, 4), -1;
  my %settings = map { /^(\w+)=(.*)$/ } split / /, $words;
  use_variables(splice @rest, 0, $count);
  my $stage = eval { become(\%settings, $folder, $cwd, \@rest, \@ends) } // 'pipe';
  syswrite($failed, "$stage\0" . ($! + 0));
  POSIX::_exit(127);
}

# Returns the step at which it failed.
sub become {
  my ($settings, $folder, $cwd, $arguments, $ends) = @_;
  $SIG{$_} = 'DEFAULT' for 'PIPE', 'HUP', 'CHLD';
  umask 0022;
  POSIX::setsid() or return 'session';
  if (defined $settings->{terminal}) {
    sysopen(my $terminal, $settings->{terminal}, POSIX::O_RDWR) or return 'terminal';
    ioctl($terminal, $control, 0) or return 'terminal';
    $ends = [($terminal) x 3];
  } elsif (!$settings->{stdin}) {
    open($ends->[0], '<', '/dev/null') or return 'pipe';
  }
  if ($settings->{script}) {
    sysopen($ends->[3], "$folder/script", POSIX::O_RDONLY) && unlink "$folder/script" or return 'script';
  }
  for (0 .. $#$ends) { POSIX::dup2(fileno($ends->[$_]), $_) // return 'pipe'; }
  if ($is_root) {
    $! = 0;
    $) = join ' ', $settings->{gid}, split /,/, $settings->{groups};
    return 'user' if $!;
    POSIX::setgid($settings->{gid}) or return 'user';
    POSIX::setuid($settings->{uid}) or return 'user';
  }
  chdir $cwd or return 'cwd';
  no warnings;
  my ($program, @words) = @$arguments;
  exec { $program } @words;
  return 'program';
}

sub start {
  my ($id, $folder, $words, $cwd, $count, @rest) = @_;
  my %settings = map { /^(\w+)=(.*)$/ } split / /, $words;
  my @mine;
  my $pid = eval {
    die "known\n" if exists $kept{$id};
    prepare();
    my $process = $next;
    $next = undef;
    @variables = @rest[0 .. $count - 1];
    my $slave;
    if ($settings{tty}) {
      ($mine[0], $slave, my $name) = terminal(\%settings);
      $mine[1] = $mine[0];
      $words .= " terminal=$name";
    } else {
      @mine = @{ $process->{mine} };
      # So that its user may reopen them, as /dev/stderr for example.
      if ($is_root) { chown $settings{uid}, $settings{gid}, $_ for @mine; }
      $mine[0] = undef if !$settings{stdin};
    }
    delete $process->{mine};
    my $order = join "\0", $folder, $words, $cwd, $count, @rest;
    $order = pack('N', length $order) . $order;
    while ($order ne '') { substr($order, 0, syswrite($process->{order}, $order) // die("fork\n"), ''); }
    # Ends with the exec, which closes the pipe.
    # The exit of another program interrupts it. Too early, no process has the terminal open.
    my ($got, $stage);
    do { $got = sysread($process->{fault}, $stage, 256) } while (!defined $got && $!{EINTR});
    if ($got) {
      waitpid $process->{pid}, 0;
      ($stage, $!) = split /\0/, $stage;
      die "$stage\n";
    }
    $process->{pid};
  };
  if (!defined $pid) {
    my $errno = $! + 0;
    chomp(my $stage = $@);
    return say_daemon('failed', $id, $stage, $errno);
  }
  not_blocking($_) for grep { defined } @mine;
  my ($input, @outputs) = @mine;
  my $piece = List::Util::max($LITTLE, List::Util::min($SOME, $settings{keep} / 4));
  my @names = $settings{tty} ? ('output') : ('stdout', 'stderr');
  $kept{$id} = {
    id => $id, pid => $pid, folder => $folder, record => $settings{record}, tty => $settings{tty} ? $input : undef,
    input => $input, pending => '', taken => 0, ends_input => 0,
    kill_at => $settings{limit} ? now() + $settings{limit} / 1000 : undef,
    streams => {
      map {
        $names[$_] => {
          name => $names[$_], handle => $outputs[$_], keep => $settings{keep}, hold => $settings{hold}, read => $piece,
          length => 0, seen => 0, files => [], file => undef, wanted => undef,
        }
      } 0 .. $#names,
    },
  };
  say_daemon('started', $id, $pid);
}

sub now { Time::HiRes::clock_gettime(Time::HiRes::CLOCK_MONOTONIC()) }

# Appends bytes to the newest file of a stream, and removes files that nobody may read any more.
sub store {
  my ($process, $stream, $bytes) = @_;
  return if $process->{discards};
  my $folder = "$process->{folder}/$stream->{name}";
  my $files = $stream->{files};
  my $most = $stream->{keep} / 4;
  if (!defined $stream->{file} || $stream->{length} - $files->[-1] >= $most) {
    mkdir $folder, 0700 if !@$files;
    if (sysopen(my $file, sprintf('%s/%016x', $folder, $stream->{length}), POSIX::O_WRONLY | POSIX::O_CREAT, 0600)) {
      $stream->{file} = $file;
      push @$files, $stream->{length};
    } else {
      $stream->{file} = undef;
    }
  }
  my $put = (defined $stream->{file} ? syswrite($stream->{file}, $bytes) : undef) // 0;
  if ($put < length $bytes) {
    $stream->{file} = undef;
    unlink sprintf('%s/%016x', $folder, pop @$files) if $put == 0 && @$files && $files->[-1] == $stream->{length};
    # Otherwise the lost bytes are a hole before the next file.
    if ($stream->{hold}) { $stream->{unwritten} = substr $bytes, $put, length($bytes), ''; }
  }
  $stream->{length} += length $bytes;
  trim($process, $stream);
  if (defined $stream->{wanted} && $stream->{length} > $stream->{wanted}) {
    $stream->{wanted} = undef;
    say_daemon('grown', $process->{id}, $stream->{name}, $stream->{length});
  }
}

sub trim {
  my ($process, $stream) = @_;
  my $files = $stream->{files};
  my $free = $stream->{hold} ? $stream->{seen} : $stream->{length} - $stream->{keep};
  while (@$files > 1 && $files->[1] <= $free) {
    unlink sprintf('%s/%s/%016x', $process->{folder}, $stream->{name}, shift @$files);
  }
}

# Reads what is there, at most $most bytes. Returns false when no writer is left.
sub receive {
  my ($process, $stream, $most) = @_;
  while ($most > 0 && !defined $stream->{unwritten}) {
    my $got = sysread($stream->{handle}, my $bytes, $stream->{read});
    return 1 if !defined $got && later();
    # EIO: the last descriptor of the terminal is closed.
    if (!$got) {
      close $stream->{handle} if !$process->{tty};
      $stream->{handle} = undef;
      say_daemon('closed', $process->{id}, $stream->{name}, $stream->{length}) if defined $stream->{wanted};
      $stream->{wanted} = undef;
      close_ended($process);
      return 0;
    }
    store($process, $stream, $bytes);
    $most -= $got;
  }
  return 1;
}

sub is_held {
  my ($process, $stream) = @_;
  return !$process->{discards} && $stream->{hold}
    && (defined $stream->{unwritten} || $stream->{length} - $stream->{seen} >= $stream->{keep});
}

# Writes what the disk had no room for before.
sub store_rest {
  my ($process, $stream) = @_;
  store($process, $stream, delete $stream->{unwritten});
  conclude($process) if !defined $stream->{unwritten};
}

sub feed {
  my ($process) = @_;
  if ($process->{pending} ne '') {
    my $put = syswrite($process->{input}, $process->{pending}, $SOME);
    return if !defined $put && later();
    return shut($process, 1) if !defined $put;
    $process->{taken} += $put;
    substr($process->{pending}, 0, $put, '');
    say_daemon('taken', $process->{id}, $process->{taken}) if $process->{pending} eq '';
  }
  shut($process, 0) if $process->{pending} eq '' && $process->{ends_input};
}

sub shut {
  my ($process, $is_broken) = @_;
  return if !defined $process->{input};
  close $process->{input} if !$process->{tty};
  $process->{input} = undef;
  $process->{pending} = '';
  say_daemon('shut', $process->{id}) if $is_broken;
}

sub reap {
  while ((my $pid = waitpid(-1, POSIX::WNOHANG)) > 0) {
    my $status = $?;
    my ($process) = grep { $_->{pid} == $pid && !defined $_->{end} } values %kept;
    $next = undef if defined $next && $next->{pid} == $pid;
    next if !defined $process;
    $process->{end} = [$status >> 8, $status & 127, $process->{timed_out} ? 1 : 0];
    conclude($process);
  }
}

# Tells the end, after the output before it.
sub conclude {
  my ($process) = @_;
  return if !defined $process->{end} || $process->{is_told};
  for my $stream (values %{ $process->{streams} }) {
    receive($process, $stream, $DRAIN) if defined $stream->{handle};
    return if defined $stream->{unwritten};
  }
  $process->{is_told} = 1;
  shut($process, 1);
  record($process) if $process->{record};
  my @lengths = map { defined $_ ? $_->{length} : () } @{ $process->{streams} }{ 'stdout', 'stderr', 'output' };
  say_daemon('ended', $process->{id}, @{ $process->{end} }, @lengths);
  close_ended($process);
}

# A reader finds the whole record or none.
sub record {
  my ($process) = @_;
  my $file = "$process->{folder}/end";
  open(my $handle, '>', "$file.new") or return;
  my $line = join(' ', @{ $process->{end} }, int(Time::HiRes::time() * 1000)) . "\n";
  my $put = syswrite($handle, $line);
  close $handle or return;
  rename "$file.new", $file if defined $put && $put == length $line;
}

sub forget {
  my ($process) = @_;
  delete $kept{ $process->{id} };
  for ($process->{input}, map { $_->{handle} } values %{ $process->{streams} }) { close $_ if defined $_; }
}

# Keeps the streams open: a background program that writes to a closed one would be killed. When too
# many are left open, the oldest is closed.
sub discard {
  my ($process) = @_;
  $process->{discards} = ++$discarded;
  delete $_->{unwritten} for values %{ $process->{streams} };
  conclude($process);
  close_ended($process);
  my @left = sort { $a->{discards} <=> $b->{discards} } grep { $_->{discards} && defined $_->{end} } values %kept;
  my $open = 0;
  for my $other (reverse @left) {
    $open += grep { defined $_->{handle} } values %{ $other->{streams} };
    forget($other) if $open > $left_open;
  }
}

# A process with a record has all of it on the disk.
sub close_ended {
  my ($process) = @_;
  return if !$process->{is_told} || !($process->{discards} || $process->{record});
  forget($process) if !grep { defined $_->{handle} } values %{ $process->{streams} };
}

# The process group of the foreground in a terminal, as the keys do; otherwise the process's.
sub send_to {
  my ($process, $signal) = @_;
  return if defined $process->{end};
  if (defined $process->{tty}) {
    return if ioctl($process->{tty}, $send_signal, $signal + 0);
    my $group = pack('i', 0);
    kill(-$signal, unpack('i', $group)) if ioctl($process->{tty}, $group_of, $group) && unpack('i', $group) > 1;
    return;
  }
  kill(-$signal, $process->{pid});
}

sub obey {
  my ($verb, $rest) = split /\0/, $_[0], 2;
  return start(split /\0/, $rest, -1) if $verb eq 'start';
  if ($verb eq 'list') {
    say_daemon('kept', $_->{id}, $_->{pid}, $_->{taken} + length $_->{pending}, defined $_->{end} ? @{ $_->{end} } : ('', '', ''))
      for grep { !$_->{discards} } values %kept;
    return say_daemon('listed');
  }
  my ($id, $argument) = split /\0/, $rest, 2;
  my $process = $kept{$id};
  # The process was forgotten with its last stream.
  if ($verb eq 'watch' && !defined $process) { return say_daemon('closed', $id, split /\0/, $argument); }
  return if !defined $process;
  if ($verb eq 'input') { $process->{pending} .= $argument if defined $process->{input} && !$process->{ends_input}; }
  elsif ($verb eq 'end-input') { $process->{ends_input} = 1; feed($process) if defined $process->{input}; }
  elsif ($verb eq 'signal') { send_to($process, $argument); }
  elsif ($verb eq 'size') { resize($process->{tty}, split /\0/, $argument) if defined $process->{tty}; }
  elsif ($verb eq 'watch') { watch($process, split /\0/, $argument); }
  elsif ($verb eq 'discard') { discard($process); }
  elsif ($verb eq 'forget') { forget($process); }
}

sub watch {
  my ($process, $name, $offset) = @_;
  my $stream = $process->{streams}{$name} // return;
  $stream->{seen} = $offset if $offset > $stream->{seen} && $offset <= $stream->{length};
  trim($process, $stream) if $stream->{hold};
  if ($stream->{length} > $offset) { say_daemon('grown', $process->{id}, $name, $stream->{length}); }
  elsif (!defined $stream->{handle}) { say_daemon('closed', $process->{id}, $name, $stream->{length}); }
  else { $stream->{wanted} = $offset; }
}

sub disconnected {
  close $daemon if defined $daemon;
  ($daemon, $received, $sending) = (undef, '', '');
  $_->{wanted} = undef for map { values %{ $_->{streams} } } values %kept;
  for my $process (grep { !$_->{record} && !$_->{discards} } values %kept) {
    kill(-9, $process->{pid}) if !defined $process->{end};
    if (defined $process->{tty}) { forget($process); }
    else { discard($process); }
  }
}

while (1) {
  reap();
  for my $process (values %kept) {
    for my $stream (values %{ $process->{streams} }) { store_rest($process, $stream) if defined $stream->{unwritten}; }
  }
  my $now = now();
  my $wait = 60;
  my ($read, $write) = ('', '');
  vec($read, fileno $_, 1) = 1 for $listener, $woken;
  if (defined $daemon) {
    # A daemon that does not read gets no more to do.
    vec($read, fileno $daemon, 1) = 1 if length $sending < $DRAIN;
    vec($write, fileno $daemon, 1) = 1 if $sending ne '';
  } elsif (!%kept) {
    exit 0 if $now >= $give_up_at;
    $wait = $give_up_at - $now;
  }
  for my $process (values %kept) {
    vec($write, fileno $process->{input}, 1) = 1 if defined $process->{input} && $process->{pending} ne '';
    for my $stream (values %{ $process->{streams} }) {
      if (defined $stream->{unwritten}) { $wait = $RETRY if $RETRY < $wait; }
      vec($read, fileno $stream->{handle}, 1) = 1 if defined $stream->{handle} && !is_held($process, $stream);
    }
    if (defined $process->{kill_at} && !defined $process->{end}) {
      if ($process->{kill_at} <= $now) {
        $process->{timed_out} = 1;
        $process->{kill_at} = undef;
        kill(-9, $process->{pid});
      } elsif ($process->{kill_at} - $now < $wait) {
        $wait = $process->{kill_at} - $now;
      }
    }
  }
  if (!defined $next) {
    my $pause = (grep { !defined $_->{end} } values %kept) ? $PAUSE : $SHORT_PAUSE;
    $wait = $pause if $pause < $wait;
  }
  my $count = select($read, $write, undef, $wait);
  eval { prepare() } if $count == 0;
  next if $count <= 0;
  sysread $woken, my $nothing, 256 if vec($read, fileno $woken, 1);
  for my $process (values %kept) {
    feed($process) if defined $process->{input} && vec($write, fileno $process->{input}, 1);
    for my $stream (values %{ $process->{streams} }) {
      receive($process, $stream, $SOME) if defined $stream->{handle} && vec($read, fileno $stream->{handle}, 1);
    }
  }
  if (vec($read, fileno $listener, 1)) {
    my $newest;
    while (accept(my $connection, $listener)) { $newest = $connection; }
    if (defined $newest) {
      disconnected();
      $daemon = $newest;
      $give_up_at = 0;
      not_blocking($daemon);
      next;
    }
  }
  next if !defined $daemon;
  if (vec($read, fileno $daemon, 1)) {
    my $got = sysread($daemon, $received, $SOME, length $received);
    if (defined $got ? $got == 0 : !later()) { disconnected(); next; }
    while (length $received >= 4 && length $received >= 4 + (my $length = unpack 'N', $received)) {
      my $frame = substr $received, 4, $length;
      substr($received, 0, 4 + $length, '');
      obey($frame);
    }
  }
  if ($sending ne '') {
    my $put = syswrite($daemon, $sending);
    if (defined $put) { substr($sending, 0, $put, ''); }
    elsif (!later()) { disconnected(); }
  }
}
