! Jobs in place, one after the other, until the file that is named exists: each turns (1, n) into (1, 1 + n). Daemons may
! follow each other meanwhile. Tells how many jobs there were.
program drain
  use, intrinsic :: iso_fortran_env, only: output_unit
  use scand
  implicit none
  type(c_ptr) :: options, daemon, buffer, job
  type(scand_tensor_t) :: tensor
  type(scand_scan_t) :: scan
  real(c_double), pointer :: x(:)
  character(len=200) :: stop_file
  logical :: is_over
  integer :: jobs

  call get_command_argument(1, stop_file)
  call check(scand_options_create(options), c_null_ptr)
  call check(scand_options_set(options, 'drain_ms' // c_null_char, 30000_c_int64_t), c_null_ptr)
  call check(scand_connect_with(options, name='drain' // c_null_char, out=daemon), c_null_ptr)
  call scand_options_destroy(options)
  call check(scand_buffer_create(daemon, SCAND_PLACE_HOST, 16_c_int64_t, buffer), daemon)
  call c_f_pointer(scand_buffer_data(buffer), x, [2])
  x = [1, 0]
  tensor%buffer = buffer
  tensor%dtype = SCAND_DTYPE_F64
  tensor%rank = 1
  tensor%shape(1) = 2
  call scand_tensor_pack(tensor)
  scan%input = tensor
  scan%output = tensor
  scan%pass_count = 1
  scan%passes(1) = SCAND_PASS_FORWARD
  jobs = 0
  is_over = .false.
  do while (.not. is_over)
    call check(scand_submit(daemon, scan, job), daemon)
    call check(scand_wait(job, -1), daemon)
    call scand_job_release(job)
    jobs = jobs + 1
    if (mod(jobs, 100) /= 0) cycle
    print '(i0)', jobs
    flush(output_unit)
    inquire(file=trim(stop_file), exist=is_over)
  end do
  if (x(2) /= jobs) error stop 1
  call scand_disconnect(daemon)

contains

  subroutine check(status, daemon)
    integer(c_int), intent(in) :: status
    type(c_ptr), intent(in) :: daemon
    if (status == SCAND_STATUS_OK) return
    if (c_associated(daemon)) then
      print '(2a)', 'drain: ', scand_text(scand_message(daemon))
    else
      print '(2a)', 'drain: ', scand_text(scand_connect_message())
    end if
    error stop 2
  end subroutine
end program
