! The double integral of traces from Fortran: one array that the daemon sees, scanned in place.
program integral
  use scand
  implicit none
  integer, parameter :: samples = 2000, traces = 300
  type(c_ptr) :: daemon, buffer, job
  type(scand_tensor_t) :: tensor
  type(scand_scan_t) :: scan
  type(scand_times_t) :: times
  real(c_float), pointer :: x(:, :)
  integer :: trace, wrong

  call check(scand_connect(out=daemon, name='integral' // c_null_char), c_null_ptr)
  call check(scand_buffer_create(daemon, SCAND_PLACE_HOST, 4_c_int64_t * samples * traces, buffer), daemon)
  call c_f_pointer(scand_buffer_data(buffer), x, [samples, traces])
  x = 1

  tensor%buffer = buffer
  tensor%dtype = SCAND_DTYPE_F32
  tensor%rank = 2
  tensor%shape(1:2) = [traces, samples]
  call scand_tensor_pack(tensor)
  scan%input = tensor
  scan%output = tensor
  scan%axis = 1
  scan%pass_count = 2
  scan%passes = [SCAND_PASS_FORWARD, SCAND_PASS_BACKWARD]
  scan%accumulator = SCAND_ACCUMULATOR_F64
  call check(scand_submit(daemon, scan, job), daemon)
  call check(scand_wait(job, -1, times), daemon)
  call scand_job_release(job)

  ! 1 + 2 + ... + samples, and less of it from sample to sample.
  wrong = 0
  do trace = 1, traces
    if (x(1, trace) /= real(samples * (samples + 1) / 2, c_float)) wrong = wrong + 1
    if (x(samples, trace) /= real(samples, c_float)) wrong = wrong + 1
  end do
  print '(i0,a,i0,a,i0,a,i0,a)', traces, ' traces of ', samples, ' samples: ', times%total_us, ' us, ', wrong, ' are wrong'

  ! What is wrong is said, not passed over.
  scan%axis = 2
  if (scand_submit(daemon, scan, job) /= SCAND_STATUS_INVALID) wrong = wrong + 1
  if (index(scand_text(scand_message(daemon)), 'axis is 2') /= 1) wrong = wrong + 1
  call scand_disconnect(daemon)
  if (wrong > 0) error stop 1

contains

  subroutine check(status, daemon)
    integer(c_int), intent(in) :: status
    type(c_ptr), intent(in) :: daemon
    if (status == SCAND_STATUS_OK) return
    if (c_associated(daemon)) then
      print '(2a)', 'integral: ', scand_text(scand_message(daemon))
    else
      print '(2a)', 'integral: ', scand_text(scand_connect_message())
    end if
    stop 1
  end subroutine
end program
