// The part of the helper's program (file-program.ts) that writes: it uses the numbers and words of
// that one, in a process that is the tenant already.

/** Perl: `write_file` PATH CONTENT. */
export const WRITE_PROGRAM = `
# Goes into the folder; what is missing of it is made.
sub enter {
  my ($folder) = @_;
  return if chdir $folder;
  refuse($! + 0) if $! != $ENOENT;
  for (my $at = 1; ($at = index($folder, '/', $at)) >= 0; $at += 1) {
    my $part = substr($folder, 0, $at);
    mkdir $part or $! == $EEXIST or refuse($! + 0);
  }
  chdir $folder or refuse($! + 0);
}

sub put {
  my ($file, $content) = @_;
  for (my $at = 0; $at < length $content;) {
    my $sent = syswrite($file, $content, length($content) - $at, $at);
    return 0 unless defined $sent;
    $at += $sent;
  }
  return syscall($fsync, fileno($file)) == 0 || $! == $EINVAL;
}

# Where no other file can take its place: the room for it is taken first, so that a full disk leaves the old content.
sub write_in_place {
  my ($file, $content) = @_;
  my $size = length $content;
  my ($keep_size, $from) = (1, 0);
  if ($size > 0 && syscall($fallocate, fileno($file), $keep_size, $from, $size) != 0) {
    refuse($! + 0) if $! == $ENOSPC || $! == $EDQUOT || $! == $EFBIG;
  }
  my $before = -s $file;
  put($file, $content) or refuse($! + 0);
  if ($before > $size) {
    truncate($file, $size) && syscall($fsync, fileno($file)) == 0 or refuse($! + 0);
  }
}

# A content without a name gets one.
sub name_it {
  my ($file, $name) = @_;
  my ($here, $follow) = (-100, 0x400);
  my $source = '/proc/self/fd/' . fileno $file;
  my $target = "$name";
  return syscall($linkat, $here, $source, $here, $target, $follow) == 0;
}

sub write_file {
  my ($path, $content) = @_;
  # What a link leads to is written, there or not, and the link stays.
  for (my $hops = 0; lstat $path and -l _; $hops += 1) {
    refuse($ELOOP) if $hops == 40;
    my $to = readlink $path;
    refuse($! + 0) unless defined $to;
    my ($folder) = $path =~ m{^(.*/)}s;
    $path = $to =~ m{^/} ? $to : $folder . $to;
  }
  my ($folder, $name) = $path =~ m{^(.*/)([^/]+)$}s;
  refuse('directory') if !defined $name || $name eq '.' || $name eq '..';
  enter($folder);

  my ($there, @old);
  if (lstat $name) {
    # A program that runs cannot be written to, but replaced.
    ($there, @old) = open_regular($name, $o_wronly, $o_nofollow, $ETXTBSY);
  } elsif ($! != $ENOENT) {
    refuse($! + 0);
  }

  # Without a name until it is whole: whatever ends this process leaves nothing. Where the file system has no such files, with a temporary one.
  my $temporary = ".berth-write-$$-" . time;
  my $named = 0;
  my $made = sysopen(my $fresh, '.', $o_tmpfile | $o_wronly, 0666);
  if (!$made && ($! == $EOPNOTSUPP || $! == $EISDIR || $! == $EINVAL || $! == $ENOENT)) {
    $made = $named = sysopen($fresh, $temporary, $o_creat_excl | $o_wronly | $o_nofollow, 0666);
  }
  my $error = $made ? 0 : $! + 0;
  my $fail = sub {
    my ($why) = @_;
    unlink $temporary if $named;
    refuse($why);
  };
  my $in_place = sub {
    unlink $temporary if $named;
    write_in_place($there, $content);
    say_all('ok ' . length($content) . "\\n");
    exit 0;
  };
  if (!$made) {
    $in_place->() if $there && ($error == $EPERM || $error == $EACCES);
    refuse($error);
  }
  if (@old) {
    if (!chown $old[4], $old[5], $fresh) {
      $in_place->() if $there;
      $fail->($! + 0);
    }
    chmod $old[2] & 01777, $fresh or $fail->($! + 0);
  }
  put($fresh, $content) or $fail->($! + 0);
  if ($named || @old || !name_it($fresh, $name)) {
    if (!$named) {
      name_it($fresh, $temporary) or $fail->($! + 0);
      $named = 1;
    }
    if (!rename $temporary, $name) {
      my $why = $! + 0;
      # A folder in which only a file's owner may replace it, or a file on which another is mounted.
      $in_place->() if $there && ($why == $EPERM || $why == $EACCES || $why == $EBUSY || $why == $EXDEV);
      $fail->($why);
    }
  }
  if (sysopen(my $here, '.', $o_directory | $o_gently)) {
    syscall($fsync, fileno($here)) == 0 || $! == $EINVAL or refuse($! + 0);
  }
  say_all('ok ' . length($content) . "\\n");
}
`;
