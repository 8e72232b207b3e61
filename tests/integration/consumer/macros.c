/*
 * A program with macros of its own, as any that includes scand.h may have them: of one letter, and of words that the
 * lists of types.h have. Compiled as C and as C++: what a header uses of them is an error, and what it takes away, too.
 */
#define A ] of the program [
#define B ] of the program [
#define C ] of the program [
#define D ] of the program [
#define E ] of the program [
#define F ] of the program [
#define G ] of the program [
#define H ] of the program [
#define I ] of the program [
#define J ] of the program [
#define K ] of the program [
#define L ] of the program [
#define M ] of the program [
#define N ] of the program [
#define O ] of the program [
#define P ] of the program [
#define Q ] of the program [
#define R ] of the program [
#define S ] of the program [
#define T ] of the program [
#define U ] of the program [
#define V ] of the program [
#define W ] of the program [
#define X ] of the program [
#define Y(S) ] of the program [
#define Z ] of the program [
#define F32       float
#define NONE      0
#define OK        0
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))
#define HOST      "localhost"
#define DEVICE    1
#define BUSY      2
#define NAME      "program"
#define WORD      unsigned

#include <scand/scand.h>

#if !defined A || !defined B || !defined C || !defined D || !defined E || !defined F || !defined G || !defined H || \
    !defined I || !defined J || !defined K || !defined L || !defined M || !defined N || !defined O || !defined P || \
    !defined Q || !defined R || !defined S || !defined T || !defined U || !defined V || !defined W || !defined X || \
    !defined Y || !defined Z || !defined NAME || !defined WORD
#error "scand.h has taken a macro away"
#endif
#ifdef SCAND_ROW
#error "scand.h has left a macro of its own"
#endif

int program(void);
int program(void)
{
    return SCAND_DTYPE_F32 == 0 && SCAND_REDUCTION_MAX > SCAND_REDUCTION_MIN && SCAND_OK == 0 && SCAND_BUSY == 8;
}
